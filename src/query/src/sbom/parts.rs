//! Rows of an inventory, for the HTML report.

use super::inventory::{Element, Inventory, Role, Supplier};

/// A component of an image; unknown texts are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// Type of the component.
    pub kind: &'static str,
    pub name: String,
    pub version: String,
    /// SPDX expression.
    pub licence: String,
    pub supplier: String,
    /// Its layer.
    pub layer: String,
    /// Its proof, from the manifest.
    pub proof: String,
    /// Whether it is a Go module.
    pub is_module: bool,
}

impl Inventory {
    /// All elements except the image and its system.
    pub fn parts(&self) -> Vec<PartRow> {
        self.elements.iter().filter_map(row).collect()
    }
}

fn row(element: &Element) -> Option<PartRow> {
    let kind = match element.role {
        Role::Image | Role::System => return None,
        Role::Base => "base image",
        Role::Bundle => "bundle",
        Role::Package => "package",
        Role::Program => "program",
        Role::GoProgram => "Go program",
        Role::GoModule => "Go module",
        Role::Container => "container image",
    };
    let fact = |name| element.facts.get(name).cloned().unwrap_or_default();
    Some(PartRow {
        kind,
        name: element.name.clone(),
        version: element.version.clone().unwrap_or_default(),
        licence: element.licence.clone().unwrap_or_default(),
        supplier: element.supplier.as_ref().map(shown).unwrap_or_default(),
        layer: fact("layer"),
        proof: fact("proof"),
        is_module: element.role == Role::GoModule,
    })
}

fn shown(supplier: &Supplier) -> String {
    match &supplier.email {
        Some(email) => format!("{} <{email}>", supplier.name),
        None => supplier.name.clone(),
    }
}
