"""Checks of a running node: a machine below systemd-nspawn (machine.py) or in qemu (vm.py).

Both have `run(*command)`, which returns the exit code and output, `read(path)` and `until(holds)`.
"""

import json
import re

PATIENCE = 30.0  # seconds until what has to happen counts as never happening
PROPERTIES = "Id,ActiveState,SubState,Result,ConditionResult,InvocationID,UnitFileState,NRestarts,ExecMainStartTimestampMonotonic"


class Asks:
    def systemctl(self, *arguments):
        return self.run("systemctl", "--no-pager", *arguments)[1]

    def show(self, *units):
        """The properties of units: {unit: {property: value}}."""
        blocks = self.systemctl("show", "-p", PROPERTIES, *units).strip().split("\n\n")
        found = [dict(line.split("=", 1) for line in block.splitlines()) for block in blocks]
        return {properties["Id"]: properties for properties in found}

    def states(self, *units):
        return {unit: (found["ActiveState"], found["UnitFileState"]) for unit, found in self.show(*units).items()}

    def failed(self):
        return {line.split()[0] for line in self.systemctl("--failed", "--plain", "--no-legend").splitlines()}

    def settled(self):
        """Waits until no job is left."""
        return self.until(lambda: not self.systemctl("list-jobs", "--no-legend").strip())

    def journal(self, *arguments):
        return self.run("journalctl", "--no-pager", "-b", "-o", "cat", *arguments)[1]

    def started(self, unit):
        """Arguments and environment of the running instance of a stand-in."""
        said = self.journal(f"_SYSTEMD_INVOCATION_ID={self.show(unit)[unit]['InvocationID']}")
        arguments = re.search(r"^arguments (.*)$", said, re.MULTILINE)
        return json.loads(arguments.group(1)) if arguments else [], dict(re.findall(r'^environment "(.*?)"="(.*)"$', said, re.MULTILINE))

    def owned(self, *paths):
        """Mode, owner and group of paths, by the names of the machine; None where there is nothing."""
        _, said = self.run("stat", "-c", "%n\t%a %U:%G", *paths)
        found = dict(line.split("\t") for line in said.splitlines() if "\t" in line)
        return {path: found.get(path) for path in paths}
