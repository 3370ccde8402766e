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
    "t=$(mktemp); rm $t; echo $t | head -c 12 > f",
    "t=$(mktemp); rm $t; printf %.11s $t",
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
    "x=$$; IFS=4; echo $x",
    "x=$$; IFS=1; set -- $x; echo $#",
    "echo $$ | { IFS=4 read a b; echo \"$a\"; }",
    "case $$ in *5) echo y ;; esac",
    "case f.$$ in f.??? | f.4*) echo y ;; esac",
    "touch 4; x=$$; for f in [$x]; do echo $f; done",
    "case 4 in [$$]) echo y ;; esac",
    "[ $$ -gt 1000 ] && echo y",
    "[ $$ \\> 5 ] && echo y",
    "x=$$; echo ${x##*[0-4]}",
    "x=$$; y=${x%4}; [ $x = $y ] && echo y",
    "printf '%5s|' $$",
    "echo $$ | wc -c",
    "echo $$ | grep -q 5 && echo y",
    "echo $$ | grep -o 4",
    "echo $$ | sed -n /5/p | wc -l",
    "printf '%s\\n5\\n' $$ | sort | head -n 1",
    "expr $$ : '.*' > f",
    "seq 9 | head -n $$ | wc -l",
    "tail -n +$$ /etc/passwd",
    "echo abc | cut -c1-$$",
    "echo a4b | tr $$ x",
    "echo 4 | grep -q \"[$$]\" && echo y",
    "sed -n \"$$p\" /etc/passwd; echo ${$}p | sed 's/[0-6]//g'",
    "exit $$",
    "f() { return $$; }; f; echo $?",
    "shift $$",
    "umask $$",
    "chmod $$ /etc/passwd",
    "touch f; chown $$ f",
    "touch -d @$$ f",
    "set -- a b; eval \"echo \\${$$-none}\"",
    "touch f.$$; set -- f.?????; rm f.$$; echo $1",
    "touch a$$ a5; ls | head -n 1; rm a$$",
    "touch a$$ a5; for f in a*; do echo $f; break; done; rm a$$",
    "touch f.$$; find . -name '*5' | grep -c .; rm f.$$",
    "echo $$ > f; stat -c %s f; rm f",
    "echo $$ > f; find f -size -5c; rm f",
    "t=$(mktemp); echo $t | tr a b > $t; rm $t",
    "t=$(mktemp); case $t in *[A-Z]*) echo y ;; esac; rm $t",
    "t=$(mktemp); rm $t; IFS=a; set -- $t; echo $#",
    "#!/bin/bash\nread -n 2 x <<< $$; echo $x",
    "#!/bin/bash\nread -N 2 x <<< $$; echo $x",
    "#!/bin/bash\nread -d 5 x <<< $$; echo $x",
    "#!/bin/bash\nx=$$; a=(1 2 3); echo ${a[x % 3]}",
    "#!/bin/bash\n[[ $$ == *5 ]] && echo y",
    "#!/bin/bash\n[[ $$ =~ 5$ ]] && echo y",
    "#!/bin/bash\n[[ $$ -gt 5 ]] && echo y",
    "#!/bin/bash\n[[ $$ > 5 ]] && echo y",
    "#!/bin/bash\nx=$$; y=${x/9/8}; echo done > f",
    "#!/bin/bash\nprintf -v x %d $$; printf -v x %.3s $$",
    "#!/bin/bash\nx=$$; echo ${x@Q} ${x:1}",
    "#!/bin/bash\nmapfile -t a < <(echo $$; echo 5 | sort); printf '%s\\n' \"${a[@]}\" | sort -n | head -n 1",
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
    "t=$(mktemp); rm $t; [ $$ = 1 ] || echo a; case $t in /tmp/*) echo b ;; *) echo c ;; esac; case $$ in '' | *[!0-9]*) exit 1 ;; esac",
    "d=/tmp/x.$$; mkdir $d; case $d/y in $d/*) echo a ;; *) exit 1 ;; esac; for f in $d/*; do [ -e $f ] || echo none; done; rmdir $d",
    "t=$(mktemp); echo a > $t; grep -H a $t; wc -l $t; sort $t /etc/passwd | head -n 1; sed -n 's/a/b/p' $t > f2; cat $t f2; rm $t f2",
    "echo a > f.$$; find . -name 'f.*' | grep -c .; ls f.*; test $$ -gt 0 && chmod 600 f.$$; awk '{ print FILENAME }' f.$$; rm f.$$",
    "t=$(mktemp); echo $t | grep -q '^/tmp/' && echo a; expr $t : '/tmp/.*' > f; printf '%s\\n' $t | sort | tail -n 1; rm $t f",
    "#!/bin/bash\nt=$(mktemp -d); [[ $t == /tmp/* ]] && echo a; [[ $t =~ ^/tmp/ ]] && echo b; x=${t//\\//_}; echo ${x%_*}; rmdir $t",
    "#!/bin/bash\nt=$(mktemp); f=${t##*/}; [[ $f == *.* ]] && echo a; [[ $t != \"$PWD\"/* ]] && echo b; IFS=/ read -r a b c <<< $t; echo $b; rm $t",
    "t=$(mktemp ./cXXX); echo a > $t; sed -i s/a/b/ $t; mv $t f; printf '%s %s' $t $$",
    "#!/bin/bash\nt=$(mktemp); x=${t#/tmp/}; y=${t/tmp/var}; rm /tmp/$x; printf -v z 'a%s' $$; echo ${t:0:5}",
];

fn result(source: &str) -> Result<Finished, Box<ShellError>> {
    let mut tree = host::tree("/work");
    host::interpret(source, "/work", &mut tree, &mut Nothing, Limits::default())
}

#[test]
fn what_a_script_makes_of_random_texts_is_refused() {
    let results = RANDOM.iter().map(|source| (source, result(source)));
    let is_refused = |found: &Result<_, Box<ShellError>>| matches!(found, Err(error) if matches!(error.kind, ErrorKind::Random { .. }));
    let others: Vec<_> = results.filter(|(_, found)| !is_refused(found)).collect();
    assert!(others.is_empty(), "{others:#?}");
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
