"use strict";
// The table of paths, of which only the rows in view are elements, and the keys of the treemap. All text goes through textContent.
(() => {
  const PATH = 0, KIND = 1, MODE = 2, OWNER = 3, BYTES = 4, LAYER = 5, ARTIFACT = 6, TARGET = 7, CHANGE = 8;
  // Rows above and below those in view.
  const MORE = 12;
  const by = (id) => document.getElementById(id);
  const source = by("data");

  const table = () => {
    const data = JSON.parse(source.textContent);
    const rows = data.rows;
    const lower = rows.map((row) => (row[PATH] + (row[TARGET] ? " " + row[TARGET] : "")).toLowerCase());
    const view = by("table"), room = by("room"), search = by("search"), layer = by("layer"), changed = by("changed");
    // Selection by a treemap rectangle, in addition to the controls.
    let tile = null;
    let found = [];
    let height = 0;

    data.layers.forEach((name, index) => {
      const option = document.createElement("option");
      option.value = String(index);
      option.textContent = name;
      layer.append(option);
    });
    by("changed-label").hidden = !data.compared;

    const cells = (row) => [
      (data.compared && row[CHANGE] ? row[CHANGE] + " " : "") + row[PATH] + (row[TARGET] ? " -> " + row[TARGET] : ""),
      row[KIND], row[MODE], row[OWNER], row[KIND] === "regular file" ? String(row[BYTES]) : "",
      data.layers[row[LAYER]] ?? "", data.artifacts[row[ARTIFACT]] ?? "",
    ];

    const element = (index) => {
      const line = document.createElement("div");
      line.className = "row";
      line.setAttribute("role", "row");
      line.setAttribute("aria-rowindex", String(index + 2));
      line.style.top = index * height + "px";
      for (const text of cells(rows[found[index]])) {
        const cell = document.createElement("span");
        cell.setAttribute("role", "cell");
        cell.textContent = text;
        cell.title = text;
        line.append(cell);
      }
      return line;
    };

    const draw = () => {
      const first = Math.max(0, Math.floor(view.scrollTop / height) - MORE);
      const last = Math.min(found.length, Math.ceil((view.scrollTop + view.clientHeight) / height) + MORE);
      const lines = [];
      for (let index = first; index < last; index++) lines.push(element(index));
      room.replaceChildren(...lines);
    };

    // The folder whose rectangle a path is in: as many names as the program takes, of those above the last one.
    const folder = (path) => path.split("/").slice(0, -1).slice(0, data.depth + 1).join("/") || "/";

    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
      found = [];
      for (let index = 0; index < rows.length; index++) {
        const row = rows[index];
        if (layer.value !== "" && row[LAYER] !== Number(layer.value)) continue;
        if (changed.checked && !row[CHANGE]) continue;
        if (tile && tile.artifact !== null && row[ARTIFACT] !== tile.artifact) continue;
        if (tile && tile.folder !== null && folder(row[PATH]) !== tile.folder) continue;
        if (words.every((word) => lower[index].includes(word))) found.push(index);
      }
      const where = [];
      if (tile) where.push(data.layers[tile.layer]);
      if (tile && tile.artifact !== null) where.push(data.artifacts[tile.artifact] || "no package");
      if (tile && tile.folder !== null) where.push(tile.folder);
      by("count").textContent = found.length + " of " + rows.length + " paths" + (tile ? " of " + where.join(", ") : "");
      view.setAttribute("aria-rowcount", String(found.length + 1));
      view.scrollTop = 0;
      room.style.height = found.length * height + "px";
      draw();
    };

    const measure = () => {
      const probe = document.createElement("div");
      probe.className = "row";
      room.replaceChildren(probe);
      height = probe.getBoundingClientRect().height;
    };

    let waits = false;
    view.addEventListener("scroll", () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => { waits = false; draw(); });
    });
    addEventListener("resize", () => { measure(); room.style.height = found.length * height + "px"; draw(); });
    search.addEventListener("input", filter);
    layer.addEventListener("change", filter);
    changed.addEventListener("change", filter);
    by("controls").addEventListener("submit", (event) => event.preventDefault());
    by("controls").addEventListener("reset", () => { tile = null; setTimeout(filter, 0); });
    measure();
    filter();

    return (chosen) => {
      tile = chosen;
      by("controls").querySelector("#search").value = "";
      changed.checked = false;
      layer.value = String(chosen.layer);
      filter();
      view.focus();
      by("paths").scrollIntoView();
    };
  };

  const treemap = (choose) => {
    const tiles = [...document.querySelectorAll("#treemap .tile")];
    if (!tiles.length) return;
    const text = by("tile-text");
    const middle = (tile) => {
      const box = tile.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    };
    // One stop for the Tab key; arrows go to the nearest rectangle on that side.
    const stop = (tile) => tiles.forEach((other) => other.setAttribute("tabindex", other === tile ? "0" : "-1"));
    const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const next = (tile, [right, down]) => {
      const [x, y] = middle(tile);
      let best = null, least = Infinity;
      for (const other of tiles) {
        const [left, top] = middle(other);
        const along = (left - x) * right + (top - y) * down;
        const aside = Math.abs((left - x) * down) + Math.abs((top - y) * right);
        if (other !== tile && along > 1 && along + 2 * aside < least) [best, least] = [other, along + 2 * aside];
      }
      return best;
    };
    const number = (value) => (value === null ? null : Number(value));
    for (const tile of tiles) {
      tile.addEventListener("focus", () => { stop(tile); text.textContent = tile.getAttribute("aria-label"); });
      tile.addEventListener("pointerenter", () => { text.textContent = tile.getAttribute("aria-label"); });
      tile.addEventListener("keydown", (event) => {
        const step = STEPS[event.key];
        if (!step) return;
        event.preventDefault();
        const other = next(tile, step);
        if (other) other.focus();
      });
      tile.addEventListener("click", (event) => {
        event.preventDefault();
        choose({
          layer: Number(tile.getAttribute("data-layer")), artifact: number(tile.getAttribute("data-artifact")),
          folder: tile.getAttribute("data-folder"),
        });
      });
    }
    stop(tiles[0]);
  };

  if (source) treemap(table());
})();
