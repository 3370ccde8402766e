//! Look-ups, edits and refusals of [`Tree`].

use super::*;

fn sample() -> Tree {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let dir = Metadata::root(0o755, Timestamp::default());
    tree.make_dirs(b"/usr/lib/x", &dir, OriginId(0)).unwrap();
    for (path, target) in [(&b"/lib"[..], &b"usr/lib"[..]), (b"/loop", b"/loop"), (b"/up", b"../../usr/lib")] {
        let kind = Kind::Symlink(target.to_vec());
        tree.place(path, Inode { meta: dir.clone(), kind, origin: OriginId(0) }).unwrap();
    }
    tree
}

fn file() -> Inode {
    Inode { meta: Metadata::default(), kind: Kind::File(Map::hole(3)), origin: OriginId(0) }
}

#[test]
fn symlinks_are_followed_inside_the_tree_only() {
    let mut tree = sample();
    let placed = tree.place(b"/lib/x/f", file()).unwrap();
    assert_eq!(tree.lookup(b"/usr/lib/x/f"), Some(placed));
    assert_eq!(tree.lookup(b"/lib/x/f"), None, "lookup follows nothing");
    assert_eq!(tree.resolve(b"/up/x/f").unwrap(), placed);
    assert_eq!(tree.real_path(b"/up/../lib/./x//f", true).unwrap(), Some((b"/usr/lib/x/f".to_vec(), placed)));
    assert_eq!(tree.real_path(b"/usr/../lib", false).unwrap().unwrap().0, b"/lib", "the last link is kept");
    assert_eq!(tree.real_path(b"/..", true).unwrap(), Some((Vec::new(), ROOT)));
    assert_eq!(tree.real_path(b"/lib/missing", true).unwrap(), None);
    assert!(matches!(tree.resolve(b"/loop"), Err(TreeError::SymlinkLoop { .. })));
    for (names, is_followed) in [(512, true), (514, false)] {
        let target = b"/usr/..".repeat((names - 2) / 2);
        let kind = Kind::Symlink([&target[..], b"/usr/lib"].concat());
        tree.place(b"/long", Inode { kind, ..file() }).unwrap();
        assert_eq!(tree.resolve(b"/long/x/f").is_ok_and(|found| found == placed), is_followed, "{names}");
    }
    assert!(matches!(tree.resolve(b"/long/x"), Err(TreeError::LinkNames { .. })));
    assert_eq!(tree.read(b"/lib/x/f", 3).unwrap(), [0; 3]);
    assert!(matches!(tree.read(b"/lib/x/f", 2), Err(TreeError::TooLarge { .. })));
}

#[test]
fn directories_and_files_do_not_replace_each_other() {
    let mut tree = sample();
    assert!(matches!(tree.place(b"/usr/lib", file()), Err(TreeError::Occupied { .. })));
    tree.place(b"/f", file()).unwrap();
    let dir = Inode { kind: Kind::directory(), ..file() };
    assert!(matches!(tree.place(b"/f", dir), Err(TreeError::Occupied { .. })));
    assert!(matches!(tree.place(b"/missing/f", file()), Err(TreeError::NotFound { .. })));
    assert!(matches!(tree.place(b"/usr/..", file()), Err(TreeError::InvalidName { .. })));
    assert!(matches!(tree.place(b"/a\0b", file()), Err(TreeError::InvalidName { .. })));
}

#[test]
fn walk_is_sorted_and_removal_takes_the_subtree() {
    let mut tree = sample();
    let paths = |tree: &Tree| tree.walk().map(|(path, ..)| String::from_utf8(path).unwrap()).collect::<Vec<_>>();
    assert_eq!(paths(&tree), ["", "/lib", "/loop", "/up", "/usr", "/usr/lib", "/usr/lib/x"]);
    assert!(tree.remove(b"/lib").unwrap(), "the link goes, not what it points to");
    assert!(tree.remove(b"/usr/lib").unwrap());
    assert!(!tree.remove(b"/usr/lib").unwrap());
    assert_eq!(paths(&tree), ["", "/loop", "/up", "/usr"]);
}

#[test]
fn renaming_moves_a_name_and_what_is_below_it() {
    let mut tree = sample();
    let placed = tree.place(b"/usr/lib/x/f", file()).unwrap();
    tree.rename(b"/lib/x/f", b"/up/g").unwrap();
    assert_eq!((tree.lookup(b"/usr/lib/g"), tree.lookup(b"/usr/lib/x/f")), (Some(placed), None));
    tree.rename(b"/usr/lib", b"/moved").unwrap();
    assert_eq!(tree.lookup(b"/moved/g"), Some(placed));
    tree.rename(b"/lib", b"/link").unwrap();
    assert!(matches!(tree.inode(tree.lookup(b"/link").unwrap()).kind, Kind::Symlink(_)), "a last link is not followed");
    tree.rename(b"/moved/g", b"/link").unwrap();
    assert_eq!(tree.lookup(b"/link"), Some(placed), "the existing node was replaced");
    tree.rename(b"/link", b"/link").unwrap();
    assert_eq!(tree.lookup(b"/link"), Some(placed));
}

#[test]
fn renaming_never_loses_a_directory() {
    let mut tree = sample();
    tree.place(b"/f", file()).unwrap();
    for (from, to) in
        [("/usr", "/usr/lib/x/y"), ("/usr", "/usr/y"), ("/usr/lib/x", "/usr"), ("/f", "/usr"), ("/usr", "/f")]
    {
        let refused = tree.rename(from.as_bytes(), to.as_bytes());
        assert!(matches!(refused, Err(TreeError::Occupied { .. })), "{from} {to}: {refused:?}");
    }
    assert!(matches!(tree.rename(b"/none", b"/g"), Err(TreeError::NotFound { .. })));
    assert!(matches!(tree.rename(b"/f", b"/none/g"), Err(TreeError::NotFound { .. })));
    assert!(matches!(tree.rename(b"/f", b"/usr/.."), Err(TreeError::InvalidName { .. })));
    tree.rename(b"/usr/lib/x", b"/y").unwrap();
    tree.rename(b"/usr", b"/y").unwrap();
    assert!(tree.lookup(b"/y/lib").is_some(), "an empty directory gives its place");
}

#[test]
fn a_new_content_is_seen_under_all_names() {
    let mut tree = sample();
    let id = tree.place(b"/f", file()).unwrap();
    tree.link(ROOT, b"g", id).unwrap();
    tree.set_content(id, Map::hole(7)).unwrap();
    assert_eq!(tree.read(b"/g", 10).unwrap(), [0; 7]);
    assert!(matches!(tree.set_content(ROOT, Map::hole(1)), Err(TreeError::NotFile { .. })));
    assert_ne!(tree.number(id), tree.number(ROOT));
}
