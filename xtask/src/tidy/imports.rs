//! Imports of one source file, by its `use` items: inline modules are part of their file, tests are left out.

use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, UseTree, Visibility};

/// One imported path, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub segments: Vec<String>,
    /// Name under which it is known here.
    pub name: String,
    /// True for `pub use` and its restricted forms.
    pub is_exported: bool,
    /// Inline modules around it.
    pub inside: Vec<String>,
}

/// Every import outside of tests.
pub fn read(text: &str) -> Result<Vec<Import>, String> {
    let file: File = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut reader = Reader::default();
    reader.visit_file(&file);
    Ok(reader.imports)
}

#[derive(Default)]
struct Reader {
    imports: Vec<Import>,
    inside: Vec<String>,
}

impl Visit<'_> for Reader {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        if is_test(&item.attrs) {
            return;
        }
        self.inside.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.inside.pop();
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        if !is_test(&item.attrs) {
            let is_exported = !matches!(item.vis, Visibility::Inherited);
            self.add(&item.tree, &mut Vec::new(), is_exported);
        }
    }
}

impl Reader {
    fn add(&mut self, tree: &UseTree, path: &mut Vec<String>, is_exported: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add(&part.tree, path, is_exported);
                path.pop();
            }
            UseTree::Name(name) => self.push(path, &name.ident.to_string(), None, is_exported),
            UseTree::Rename(name) => {
                self.push(path, &name.ident.to_string(), Some(name.rename.to_string()), is_exported);
            }
            UseTree::Glob(_) => self.push(path, "*", None, is_exported),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, path, is_exported)),
        }
    }

    fn push(&mut self, path: &[String], last: &str, rename: Option<String>, is_exported: bool) {
        let mut segments = path.to_vec();
        // `use a::{self}` imports `a`.
        if last != "self" {
            segments.push(last.to_owned());
        }
        let name = rename.or_else(|| segments.last().cloned()).unwrap_or_default();
        self.imports.push(Import { segments, name, is_exported, inside: self.inside.clone() });
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_renames_and_restricted_exports_are_read() {
        let text = "use crate::a::{self, B as C}; pub(crate) use super::d::*; #[cfg(test)] mod tests { use super::*; }";
        let imports = read(text).unwrap();
        let paths: Vec<String> = imports.iter().map(|import| import.segments.join("::")).collect();
        assert_eq!(paths, ["crate::a", "crate::a::B", "super::d::*"]);
        assert_eq!(imports[1].name, "C");
        assert!(imports[2].is_exported && !imports[0].is_exported);
    }
}
