//! Converts templates of a profile to templates of the first boot.
//!
//! A template is rendered with and without each machine-specific value whose presence it tests. The results are combined to a template of
//! the first-boot plan, which must reproduce them.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_common::message;
use vmbake_firstboot::template::{self, Fault, Machine, Scope, Writing};

use super::error::ImportError;
use super::runtime::{CLOSE, Case, Form, OPEN, RUNTIME, RuntimeValue, address, only_value};

/// Most elements of a list that are tried out.
const ELEMENTS: usize = 3;

/// What a template becomes: its text in each case.
pub(super) type Rendering<'a> = dyn Fn(&Case) -> Result<String, ImportError> + 'a;

/// A file as a template of the first-boot plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Deferred {
    /// The template.
    pub(super) text: String,
    /// Whether it tests which values there are.
    pub(super) tests: bool,
}

/// Puts a template of the first-boot plan together for the file at `path`, whose template names `fields`; none if no value of a machine
/// has a part in it.
pub(super) fn deferred(
    path: &str,
    fields: &BTreeSet<String>,
    rendering: &Rendering<'_>,
) -> Result<Option<Deferred>, ImportError> {
    let named: Vec<&'static RuntimeValue> = RUNTIME.iter().filter(|value| fields.contains(value.field)).collect();
    if named.is_empty() {
        return Ok(None);
    }
    let mut builder = Builder { path, rendering, tests: false };
    let text = builder.choose(&named, &Case::whole())?;
    let tests = builder.tests;
    if !tests && !text.contains("{{") {
        return Ok(None);
    }
    builder.compare(&text, &named)?;
    Ok(Some(Deferred { text, tests }))
}

/// A text with marks, none of which is tested for, as a template.
pub(super) fn plain_template(path: &str, text: &str) -> Result<String, ImportError> {
    let is_whole = is_whole(text);
    let unclear = || ImportError::SeveralLines { path: path.to_owned() };
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after.split_once(CLOSE).ok_or_else(unclear)?;
        let value = RuntimeValue::of(name).ok_or_else(unclear)?;
        if value.form == Form::Lines && !is_whole {
            return Err(unclear());
        }
        out += &literal(before);
        out += &value.expression();
        rest = after;
    }
    Ok(out + &literal(rest))
}

/// Whether a text is one value with several lines, but for the white space around it: the first boot inserts no other value of this kind.
fn is_whole(text: &str) -> bool {
    let mark = text.trim().strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
    mark.and_then(RuntimeValue::of).is_some_and(|value| value.form == Form::Lines)
}

/// A text that has no meaning for the template language.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
        let (before, after) = rest.split_at(at);
        let (tag, after) = after.split_at(2);
        out += &format!("{before}{{{{ '{tag}' }}}}");
        rest = after;
    }
    out + rest
}

struct Builder<'a> {
    path: &'a str,
    rendering: &'a Rendering<'a>,
    tests: bool,
}

impl Builder<'_> {
    /// The template for what the other values decide.
    fn choose(&mut self, left: &[&'static RuntimeValue], case: &Case) -> Result<String, ImportError> {
        let Some((first, left)) = left.split_first() else { return self.text(case) };
        let with = self.choose(left, case)?;
        let without = self.choose(left, &case.without(first.field))?;
        // An empty value is not tested.
        if with.replace(&first.expression(), "") == without || (first.form == Form::Lines && without.trim().is_empty())
        {
            return Ok(with);
        }
        if first.form == Form::Addresses && !first.optional {
            return Ok(with);
        }
        self.tests = true;
        choice(first.variable, &with, &without)
            .ok_or_else(|| ImportError::Choice { path: self.path.to_owned(), field: first.field })
    }

    /// The template for one case, lists as loops.
    fn text(&self, case: &Case) -> Result<String, ImportError> {
        let mut text = (self.rendering)(case)?;
        for value in RUNTIME.iter().filter(|value| value.form == Form::Addresses && !case.absent.contains(value.field))
        {
            if !text.contains(&value.element(0)) {
                continue;
            }
            let longer = (2..=ELEMENTS).map(|elements| (self.rendering)(&Case { elements, ..case.clone() }));
            let longer = longer.collect::<Result<Vec<_>, _>>()?;
            let (before, body, after) = repeated(value, &text, &longer)
                .ok_or_else(|| ImportError::List { path: self.path.to_owned(), field: value.field })?;
            let (before, after) = (plain_template(self.path, &before)?, plain_template(self.path, &after)?);
            let body: Vec<String> = body.split(&value.element(0)).map(literal).collect();
            let body = body.join("{{ item }}");
            let list = format!("{}|split(',')", value.variable);
            text = format!("{before}{{% for item in {list} %}}\n{body}{{% endfor %}}\n{after}");
            return Ok(text);
        }
        plain_template(self.path, &text)
    }

    /// Renders the template as a machine would, in each case, and compares with what was to come out.
    fn compare(&self, template: &str, named: &[&'static RuntimeValue]) -> Result<(), ImportError> {
        let optional: Vec<&RuntimeValue> = named.iter().copied().filter(|value| value.optional).collect();
        for bits in 0..1_usize << optional.len() {
            for elements in 1..=ELEMENTS {
                let absent = optional.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                let case = Case { absent: absent.map(|(_, value)| value.field).collect(), elements };
                let expected = self.expected(&case)?;
                let variables: BTreeMap<String, String> = RUNTIME
                    .iter()
                    .map(|value| {
                        let is_there = !case.absent.contains(value.field);
                        (value.variable.to_owned(), if is_there { value.sample(elements).0 } else { String::new() })
                    })
                    .collect();
                let scope = Scope { variables: &variables, machine: &Nowhere };
                let found = template::render(template, &scope, Writing::Lines);
                // Of a value that is not there, only white space is left.
                let is_absent = only_value(template).is_some_and(|value| case.absent.contains(value.field));
                let is_same = found.is_ok_and(|found| {
                    found == expected || (is_absent && found.trim().is_empty() && expected.trim().is_empty())
                });
                if !is_same {
                    return Err(ImportError::Message(message!(
                        "{}: the first boot cannot write this template: simplify its conditions on values that only machines know",
                        self.path
                    )));
                }
            }
        }
        Ok(())
    }

    /// What a machine is to have in a case.
    fn expected(&self, case: &Case) -> Result<String, ImportError> {
        let mut text = (self.rendering)(case)?;
        for value in &RUNTIME {
            text = text.replace(&value.mark(), &value.sample(case.elements).1);
            for at in 0..ELEMENTS {
                text = text.replace(&value.element(at), &address(at));
            }
        }
        Ok(text)
    }
}

/// What stands before, in and behind the part of a text that is there once for each element of a list.
fn repeated(value: &RuntimeValue, one: &str, longer: &[String]) -> Option<(String, String, String)> {
    let (first, at) = (value.element(0), one.find(&value.element(0))?);
    let len = longer.first()?.len().checked_sub(one.len())?;
    let lines = one.match_indices('\n').map(|(at, _)| at.saturating_add(1));
    let starts = std::iter::once(0).chain(lines).filter(|start| *start <= at).collect::<Vec<_>>();
    // From the beginning of a line, the nearest one first.
    starts.into_iter().rev().find_map(|start| {
        let end = start.checked_add(len)?;
        let (before, body, after) = (one.get(..start)?, one.get(start..end)?, one.get(end..)?);
        let is_right = body.contains(&first)
            && body.ends_with('\n')
            && !after.contains(&first)
            && !before.contains(&first)
            && longer.iter().zip(2..).all(|(text, elements)| {
                let bodies = (0..elements).map(|at| body.replace(&first, &value.element(at)));
                *text == format!("{before}{}{after}", bodies.collect::<String>())
            });
        is_right.then(|| (before.to_owned(), body.to_owned(), after.to_owned()))
    })
}

/// Either text, by whether a setting has a value: only the lines that differ are there twice.
fn choice(variable: &str, with: &str, without: &str) -> Option<String> {
    let (with, without): (Vec<&str>, Vec<&str>) =
        (with.split_inclusive('\n').collect(), without.split_inclusive('\n').collect());
    let common = with.iter().zip(&without).take_while(|(one, other)| one == other).count();
    let before = (0..=common).rev().find(|count| is_closed(with.get(..*count).unwrap_or_default()))?;
    let (with_rest, without_rest) = (with.get(before..)?, without.get(before..)?);
    let common = with_rest.iter().rev().zip(without_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let split = |lines: &[&str], count: usize| lines.len().checked_sub(count);
    let after = (0..=common).rev().find(|count| {
        let tail = split(with_rest, *count).and_then(|at| with_rest.get(at..));
        tail.is_some_and(is_closed)
    })?;
    let middle = |lines: &[&str]| split(lines, after).and_then(|at| lines.get(..at)).unwrap_or_default().concat();
    let (mine, other) = (middle(with_rest), middle(without_rest));
    let is_lines = |text: &str| text.is_empty() || text.ends_with('\n');
    if !is_lines(&mine) || !is_lines(&other) {
        return None;
    }
    let head = with.get(..before)?.concat();
    let tail = with_rest.get(split(with_rest, after)?..)?.concat();
    let chosen = match (mine.is_empty(), other.is_empty()) {
        (true, _) => format!("{{% if not {variable} %}}\n{other}{{% endif %}}\n"),
        (_, true) => format!("{{% if {variable} %}}\n{mine}{{% endif %}}\n"),
        _ => format!("{{% if {variable} %}}\n{mine}{{% else %}}\n{other}{{% endif %}}\n"),
    };
    Some(head + &chosen + &tail)
}

/// Whether every block that begins in these lines ends there.
fn is_closed(lines: &[&str]) -> bool {
    let begins = lines.iter().filter(|line| line.starts_with("{% if ") || line.starts_with("{% for ")).count();
    let ends = lines.iter().filter(|line| line.starts_with("{% end")).count();
    begins == ends
}

/// No machine: templates of profiles ask none.
struct Nowhere;

impl Machine for Nowhere {
    fn exists(&self, _: &str) -> Result<bool, Fault> {
        Ok(false)
    }

    fn addresses(&self, _: &str) -> Result<Vec<String>, Fault> {
        Ok(Vec::new())
    }

    fn cloud(&self, _: &str) -> Result<String, Fault> {
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(fields: &[&str], rendering: impl Fn(&Case) -> String) -> Result<Option<Deferred>, ImportError> {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        deferred("/f", &fields, &|case| Ok(rendering(case)))
    }

    fn taints(case: &Case) -> Option<String> {
        (!case.absent.contains("InitialTaints")).then(|| RuntimeValue::of("INITIAL_TAINTS").unwrap().mark())
    }

    #[test]
    fn values_stand_where_their_marks_were() {
        let found = template(&["InitialTaints"], |case| format!("a {{{{ b\nt={}\n", taints(case).unwrap_or_default()));
        let text = "a {{ '{{' }} b\nt={{ INITIAL_TAINTS }}\n".to_owned();
        assert_eq!(found.unwrap(), Some(Deferred { text, tests: false }));
        assert_eq!(template(&["InitialTaints"], |_| "a\n".to_owned()).unwrap(), None);
        assert_eq!(template(&[], |_| "{{ a }}\n".to_owned()).unwrap(), None);
    }

    #[test]
    fn both_branches_of_a_test_are_there() {
        let found = template(&["InitialTaints"], |case| match taints(case) {
            Some(mark) => format!("run \\\n  --taints={mark} \\\n  --x\n"),
            None => "run \\\n  --x\n".to_owned(),
        });
        let text =
            "run \\\n{% if INITIAL_TAINTS %}\n  --taints={{ INITIAL_TAINTS }} \\\n{% endif %}\n  --x\n".to_owned();
        assert_eq!(found.unwrap(), Some(Deferred { text, tests: true }));
        let cut =
            template(&["InitialTaints"], |case| if taints(case).is_some() { "a".to_owned() } else { "b".to_owned() });
        assert!(matches!(cut, Err(ImportError::Choice { .. })), "{cut:?}");
    }

    #[test]
    fn lists_are_loops() {
        let value = RuntimeValue::of("CLUSTER_DNS").unwrap();
        let list = |case: &Case| -> String {
            let elements = if case.absent.contains("ClusterDNSIPs") { 0 } else { case.elements };
            (0..elements).map(|at| format!("- \"{}\"\n", value.element(at))).collect()
        };
        let found = template(&["ClusterDNSIPs"], |case| format!("dns:\n{}end: 1\n", list(case)));
        let text =
            "dns:\n{% for item in CLUSTER_DNS|split(',') %}\n- \"{{ item }}\"\n{% endfor %}\nend: 1\n".to_owned();
        assert_eq!(found.unwrap(), Some(Deferred { text, tests: false }));
        let counted = template(&["ClusterDNSIPs"], |case| format!("{}\n{}", case.elements, list(case)));
        assert!(matches!(counted, Err(ImportError::List { .. })), "{counted:?}");
    }

    #[test]
    fn lines_are_a_file_of_their_own() {
        let mark = RuntimeValue::of("KUBERNETES_CA").unwrap().mark();
        let given = |case: &Case| if case.absent.is_empty() { mark.clone() } else { String::new() };
        let found = template(&["KubernetesCACert"], |case| given(case) + "\n").unwrap();
        assert_eq!(found, Some(Deferred { text: "{{ KUBERNETES_CA|base64 }}\n".to_owned(), tests: false }));
        let inside = template(&["KubernetesCACert"], |case| format!("ca: {}\n", given(case)));
        assert!(matches!(inside, Err(ImportError::SeveralLines { .. })), "{inside:?}");
    }
}
