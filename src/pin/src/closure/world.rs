//! The available packages: those of archives and of the base, and the candidate version of each.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use debversion::Version;

use vmbake_manifest::package_request::PackagePattern;
use vmbake_manifest::relation::{Operator, Relation};
use vmbake_proof::apt::{PackageIndex, Stanza};

/// The negative relations.
const NEGATIVE: [&str; 2] = ["Conflicts", "Breaks"];
/// Values of `Priority`, the highest first.
const PRIORITIES: [&str; 5] = ["required", "important", "standard", "optional", "extra"];

/// One version of a package, with its relations.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) source: Source,
    /// Index of its archive; `None` if it is installed.
    pub(super) archive: Option<usize>,
    pub(super) stanza: Option<Stanza<'a>>,
    /// `Pre-Depends`, then `Depends`.
    pub(super) needs: Vec<Vec<Relation>>,
    pub(super) recommends: Vec<Vec<Relation>>,
    /// Field and relation.
    pub(super) avoids: Vec<(&'static str, Relation)>,
    provides: Vec<(String, Option<Version>)>,
    arch: String,
    multi_arch: String,
    essential: bool,
    important: bool,
    priority: usize,
}

/// Name and version of the source package.
pub(super) type Source = (String, String);

/// An archive with its name.
pub(super) type Archive<'a> = (&'a str, &'a PackageIndex);

/// The available packages.
pub(super) struct World<'a> {
    archives: Vec<Archive<'a>>,
    base: HashMap<String, Rc<Node<'a>>>,
    /// Packages that layers remove from the base.
    removed: HashMap<String, Rc<Node<'a>>>,
    /// Packages of the base that dpkg holds.
    held: HashSet<String>,
    /// Versions requested by layers, by name.
    wanted: BTreeMap<&'a str, Vec<&'a PackagePattern>>,
    candidates: RefCell<HashMap<String, Option<Rc<Node<'a>>>>>,
    mentions: RefCell<HashMap<String, (usize, usize)>>,
}

impl<'a> World<'a> {
    /// `given` are packages that the manifest has as artifacts, by name and version: they count as installed.
    pub(super) fn new(
        archives: Vec<Archive<'a>>,
        base: &'a PackageIndex,
        given: &BTreeMap<String, String>,
        wanted: impl Iterator<Item = &'a PackagePattern>,
    ) -> Self {
        let mut of: BTreeMap<&str, Vec<&PackagePattern>> = BTreeMap::new();
        for one in wanted.filter(|one| one.version.is_some()) {
            of.entry(&one.name).or_default().push(one);
        }
        let installed =
            base.iter().filter_map(|stanza| Node::read(stanza, None)).map(|node| (node.name.clone(), Rc::new(node)));
        let is_held = |stanza: &Stanza<'_>| stanza.get("Status").is_some_and(|status| status.starts_with("hold "));
        let held = base.iter().filter(is_held).filter_map(|stanza| stanza.get("Package").map(str::to_owned)).collect();
        let mut world = Self {
            archives,
            base: installed.collect(),
            removed: HashMap::new(),
            held,
            wanted: of,
            candidates: RefCell::default(),
            mentions: RefCell::default(),
        };
        for (name, version) in given {
            let node = world.given(name, version);
            world.base.extend(node.map(|node| (name.clone(), Rc::new(node))));
        }
        world
    }

    /// A package that counts as installed.
    fn given(&self, name: &str, version: &str) -> Option<Node<'a>> {
        let version: Version = version.parse().ok()?;
        let known = self.versions(name).into_iter().find(|node| node.version == version);
        let node = known.map(|node| Node { archive: None, ..node });
        Some(node.unwrap_or_else(|| Node::bare(name, version)))
    }

    /// Every version of a package in the archives, in their order.
    pub(super) fn versions(&self, name: &str) -> Vec<Node<'a>> {
        let all = self.archives.iter().enumerate();
        all.flat_map(|(number, (_, package_index))| {
            package_index.named(name).filter_map(move |stanza| Node::read(stanza, Some(number)))
        })
        .collect()
    }

    pub(super) fn archive(&self, number: usize) -> &'a str {
        self.archives.get(number).map_or("", |(name, _)| name)
    }

    /// Names of all packages, for suggestions.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.archives
            .iter()
            .flat_map(|(_, package_index)| package_index.iter().filter_map(|stanza| stanza.get("Package")))
    }

    /// Names of the archives.
    pub(super) fn archives(&self) -> Vec<String> {
        self.archives.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// Packages of archives that only provide a name.
    pub(super) fn providers(&self, name: &str) -> Vec<String> {
        let all = self.archives.iter().flat_map(|(_, package_index)| package_index.providers(name));
        let names: BTreeSet<&str> = all.filter_map(|stanza| stanza.get("Package")).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The packages of the base, by name.
    pub(super) fn base(&self) -> Vec<Rc<Node<'a>>> {
        let mut all: Vec<_> = self.base.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The version in the base.
    pub(super) fn installed(&self, name: &str) -> Option<&Rc<Node<'a>>> {
        self.base.get(name)
    }

    /// Takes a package out of the base.
    pub(super) fn remove(&mut self, name: &str) {
        self.removed.extend(self.base.remove_entry(name));
    }

    /// The version that was taken out of the base.
    pub(super) fn removed(&self, name: &str) -> Option<&Rc<Node<'a>>> {
        self.removed.get(name)
    }

    /// Whether dpkg holds a package of the base.
    pub(super) fn is_held(&self, name: &str) -> bool {
        self.held.contains(name)
    }

    /// The candidate: the newest version that matches the requests. A later version in the base is kept.
    pub(super) fn candidate(&self, name: &str) -> Option<Rc<Node<'a>>> {
        if let Some(known) = self.candidates.borrow().get(name) {
            return known.clone();
        }
        let found = self.choose(name);
        self.candidates.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }

    fn choose(&self, name: &str) -> Option<Rc<Node<'a>>> {
        let is_wanted = |node: &Node<'_>| self.fits(name, &node.version.to_string());
        // Of equal versions, that of the first archive is used.
        let newest = self.versions(name).into_iter().filter(is_wanted).rev().max_by(|a, b| a.version.cmp(&b.version));
        match (self.installed(name), newest) {
            (Some(installed), newest) if is_wanted(installed) => {
                let newer = newest.filter(|newest| newest.version > installed.version);
                Some(newer.map_or_else(|| installed.clone(), Rc::new))
            }
            (_, newest) => newest.map(Rc::new),
        }
    }

    /// Whether a version of a package matches the requests of all layers.
    pub(super) fn fits(&self, name: &str, version: &str) -> bool {
        self.wanted.get(name).into_iter().flatten().all(|wanted| wanted.accepts(version))
    }

    /// The requested versions of a package.
    pub(super) fn wanted(&self, name: &str) -> Vec<String> {
        self.wanted.get(name).into_iter().flatten().map(ToString::to_string).collect()
    }

    /// The candidates that satisfy a relation of `of`: the package itself and those that provide it, in apt's order.
    fn candidates_for(&self, relation: &Relation, of: &Node<'_>) -> Vec<Rc<Node<'a>>> {
        let mut names = vec![relation.name.as_str()];
        for (_, package_index) in &self.archives {
            names.extend(package_index.providers(&relation.name).filter_map(|stanza| stanza.get("Package")));
        }
        names.extend(self.base.values().filter(|node| node.has(&relation.name)).map(|node| node.name.as_str()));
        names.sort_unstable();
        names.dedup();
        let mut found: Vec<_> = names.into_iter().filter_map(|name| self.candidate(name)).collect();
        found.retain(|node| node.satisfies(relation, of));
        found.sort_by(|a, b| self.compare(&relation.name, a, b));
        found
    }

    /// The candidates that satisfy a group, in the order in which apt tries them: packages of the base come first.
    pub(super) fn solutions(&self, group: &[Relation], of: &Node<'_>) -> Vec<Rc<Node<'a>>> {
        let all = group.iter().flat_map(|relation| self.candidates_for(relation, of));
        let (mut first, new): (Vec<_>, Vec<_>) = all.partition(|node| self.installed(&node.name).is_some());
        first.extend(new);
        let mut seen = HashSet::new();
        first.retain(|node| seen.insert(node.name.clone()));
        first
    }

    /// The order in which apt prefers packages that provide `target`.
    fn compare(&self, target: &str, a: &Node<'_>, b: &Node<'_>) -> Ordering {
        let installed = |node: &Node<'_>| self.installed(&node.name).is_some();
        let first = |of: fn(&Self, &Node<'_>) -> bool| Reverse(of(self, a)).cmp(&Reverse(of(self, b)));
        Reverse(installed(a) && a.multi_arch == "same")
            .cmp(&Reverse(installed(b) && b.multi_arch == "same"))
            .then_with(|| first(|world, node| world.installed(&node.name).is_some()))
            .then_with(|| Reverse(a.name == target).cmp(&Reverse(b.name == target)))
            .then_with(|| {
                first(|world, node| node.essential || world.installed(&node.name).is_some_and(|old| old.essential))
            })
            .then_with(|| {
                first(|world, node| node.important || world.installed(&node.name).is_some_and(|old| old.important))
            })
            .then_with(|| a.priority.cmp(&b.priority))
            // Arbitrary, but required for the same result: apt takes the package that it read last.
            .then_with(|| self.mention(&b.name).cmp(&self.mention(&a.name)))
    }

    /// When apt first reads a name in the archives, and then in the base.
    pub(super) fn mention(&self, name: &str) -> (usize, usize) {
        if let Some(known) = self.mentions.borrow().get(name) {
            return *known;
        }
        let all = self.archives.iter().enumerate();
        let found =
            all.into_iter().find_map(|(number, (_, package_index))| Some((number, package_index.first_mention(name)?)));
        let found = found.unwrap_or((usize::MAX, 0));
        self.mentions.borrow_mut().insert(name.to_owned(), found);
        found
    }
}

impl<'a> Node<'a> {
    /// Reads a package; `None` if its version or relations are invalid.
    fn read(stanza: Stanza<'a>, archive: Option<usize>) -> Option<Self> {
        let field = |name| stanza.get(name).unwrap_or_default().to_owned();
        let mut needs = stanza.groups("Pre-Depends")?;
        needs.extend(stanza.groups("Depends")?);
        let mut avoids = Vec::new();
        for field in NEGATIVE {
            avoids.extend(stanza.groups(field)?.into_iter().flatten().map(|relation| (field, relation)));
        }
        let mut provides = Vec::new();
        for relation in stanza.groups("Provides")?.into_iter().flatten() {
            match relation.version {
                None => provides.push((relation.name, None)),
                Some((Operator::Equal, version)) => provides.push((relation.name, Some(version))),
                Some(_) => {}
            }
        }
        let is = |name| stanza.get(name) == Some("yes");
        let priority = stanza.get("Priority").unwrap_or_default();
        Some(Self {
            name: field("Package"),
            version: stanza.get("Version")?.parse().ok()?,
            source: source(stanza),
            archive,
            stanza: Some(stanza),
            needs,
            recommends: stanza.groups("Recommends")?,
            avoids,
            provides,
            arch: field("Architecture"),
            multi_arch: field("Multi-Arch"),
            essential: is("Essential"),
            // apt treats both fields in the same way.
            important: is("Important") || is("Protected"),
            priority: PRIORITIES.iter().position(|known| *known == priority).unwrap_or(PRIORITIES.len()),
        })
    }

    /// A package without relations.
    fn bare(name: &str, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            source: (name.to_owned(), version.to_string()),
            version,
            archive: None,
            stanza: None,
            needs: Vec::new(),
            recommends: Vec::new(),
            avoids: Vec::new(),
            provides: Vec::new(),
            arch: "all".to_owned(),
            multi_arch: "allowed".to_owned(),
            essential: false,
            important: false,
            priority: PRIORITIES.len(),
        }
    }

    /// The field that forbids removing it.
    pub(super) fn unremovable(&self) -> Option<&'static str> {
        match (self.essential, self.important) {
            (true, _) => Some("Essential"),
            (false, true) => Some("Protected"),
            (false, false) => None,
        }
    }

    fn has(&self, provided: &str) -> bool {
        self.provides.iter().any(|(name, _)| name == provided)
    }

    pub(super) fn provided(&self) -> impl Iterator<Item = &str> {
        self.provides.iter().map(|(name, _)| name.as_str())
    }

    /// Whether a relation refers to it, by its name or by what it provides.
    pub(super) fn is_meant(&self, relation: &Relation) -> bool {
        let is_provided =
            |(name, version): &(String, Option<Version>)| *name == relation.name && relation.accepts(version.as_ref());
        (self.name == relation.name && relation.accepts(Some(&self.version))) || self.provides.iter().any(is_provided)
    }

    /// Whether it satisfies a dependency of the package `of`.
    pub(super) fn satisfies(&self, relation: &Relation, of: &Node<'_>) -> bool {
        self.is_meant(relation) && relation.fits_architecture(&of.arch, &self.arch, &self.multi_arch)
    }
}

/// Parses `NAME (VERSION)`; parts that equal those of the package are omitted in the field.
fn source(stanza: Stanza<'_>) -> Source {
    let own = |field| stanza.get(field).unwrap_or_default();
    let mut words = own("Source").split([' ', '(', ')']).filter(|word| !word.is_empty());
    let (name, version) = (words.next().unwrap_or(own("Package")), words.next().unwrap_or(own("Version")));
    (name.to_owned(), version.to_owned())
}
