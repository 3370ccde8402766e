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
    assert!(matches!(tree.resolve(b"/long/x"), Err(TreeError::SymlinkLoop { .. })));
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
