//! Process ids, and names that mktemp makes up: what a script makes of them is refused if it is not recognized.

use vmbake_shell::{ErrorKind, Finished, Limits, ShellError};

use crate::host::{self, Nothing};

/// Scripts that make something of a process id, or of a name of mktemp, that is not recognized.
const RANDOM: &[&str] = &[
    "t=$(mktemp -p . pw.XXXXXXXX); p=${t#./pw.}; rm $t; echo \"password: $p\" > f",
    "t=$(mktemp -p . XXX); rm $t; echo ${t#./} > f",
    "t=$(mktemp -d); rmdir $t; mkdir x${t##*/}",
    "t=$(mktemp -d); rmdir $t; ln -s $t l",
    "t=$(mktemp); echo $t > $t; cp $t f; rm $t",
    "t=$(mktemp); echo $t > $t; mv $t f",
    "t=$(mktemp); echo $t > $t; install $t f; rm $t",
    "d=$(mktemp -d); echo $d > $d/f; mv $d e",
    "d=$(mktemp -d ./dXXXX); mkdir $d/e; echo $$ > $d/e/f; mv $d/../$d/e .; rmdir $d",
    "t=$(mktemp); echo $t > f; sed s/a/b/ f > g; rm f $t",
    "t=$(mktemp); rm $t; echo ${t%?} > f",
    "t=$(mktemp); rm $t; echo $t | md5sum > f",
    "t=$(mktemp); echo $t > $t; s=$(md5sum $t); rm $t",
    "t=$(mktemp); rm $t; echo $t | tr -d 0-9 > f",
    "t=$(mktemp); rm $t; echo $t > g; cut -c1-14 g > f; rm g",
    "t=$(mktemp); rm $t; basename $t | sed 's/.*\\(..\\)$/\\1/' > f",
    "t=$(mktemp); rm $t; echo $t | head -c 9 > f",
    "t=$(mktemp); rm $t; printf %.9s $t",
    "echo $(($$ % 10))",
    "x=$$; echo $((x % 10))",
    "echo ${$#?}",
    "x=$$; echo ${x%5}",
    "x=f.$$; echo ${#x}",
    "expr $$ % 10",
    "printf %x $$",
    "echo $$ | md5sum",
    "echo $$ > f; sha256sum f; rm f",
    "echo $$ > f; sed -i 's/.$//' f",
    "echo $$ | awk '{ print $1 % 10 }'",
    "#!/bin/bash\nx=$$; echo ${x:0:2}",
    "#!/bin/bash\nx=$$; echo ${x/4/5}",
    "#!/bin/bash\nx=$(mktemp); rm $x; echo ${x^^}",
    "#!/bin/bash\nx=($(mktemp) a); rm $x; echo ${x[@]/[0-9]}",
    "#!/bin/bash\nx=$$; (( x % 2 )) && echo odd",
    "#!/bin/bash\nx=$$; let y=x+1",
    "#!/bin/bash\ndeclare -i x=$$+1",
    "#!/bin/bash\nprintf -v x %x $$",
    "#!/bin/bash\nx=$$; echo ${#x}",
    "#!/bin/bash\nx=$BASHPID",
];

/// Scripts to which a process id or a name of mktemp is only a name.
const NAMES: &[&str] = &[
    "echo a > f.$$; cat f.$$; mv f.$$ f",
    "t=$(mktemp); echo ${#t} ${t%/*}; echo a > $t; sed s/a/b/ $t > f; md5sum < $t; rm $t",
    "d=$(mktemp -d); trap 'rm -rf $d' EXIT; cd $d; echo $$ > pid; echo $d | grep -q tmp; cat pid | wc -l",
    "d=$(mktemp -d); echo a > $d/f; cp $d/f f; rm -r $d",
    "t=$(mktemp); echo a > $t; md5sum $t | cut -d ' ' -f 1; wc -c $t | awk '{ print $1 }'; md5sum $t | head -c 32; rm $t",
    "t=$(mktemp); echo $t | sed 's,/[^/]*$,,'; echo $t b | cut -d ' ' -f 2; awk '{ print $1 }' $t; expr 1 + 2; rm $t",
    "t=$(mktemp -d); n=${t##*/}; rmdir /tmp/$n; case $t in /tmp/*) echo y ;; esac",
    "t=$(mktemp); echo $t | tr a b > $t; rm $t; [ $$ = 1 ] || echo a",
    "t=$(mktemp ./cXXX); echo a > $t; sed -i s/a/b/ $t; mv $t f; printf '%s %s' $t $$",
    "#!/bin/bash\nt=$(mktemp); x=${t#/tmp/}; y=${t/tmp/var}; rm /tmp/$x; printf -v z 'a%s' $$; echo ${t:0:5}",
];

fn result(source: &str) -> Result<Finished, Box<ShellError>> {
    let mut tree = host::tree("/work");
    host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default())
}

#[test]
fn what_a_script_makes_of_random_texts_is_refused() {
    for source in RANDOM {
        let kind = result(source).map(|finished| finished.status).map_err(|error| error.kind);
        assert!(matches!(kind, Err(ErrorKind::Random { .. })), "{source}: {kind:?}");
    }
}

#[test]
fn names_of_temporary_files_are_not_refused() {
    for source in NAMES {
        assert_eq!(
            result(source).map(|finished| finished.status).map_err(|error| error.to_string()),
            Ok(0),
            "{source}"
        );
    }
}
