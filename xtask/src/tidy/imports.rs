//! Imports of one source file, by its `use` items and by the paths in its code: inline modules are part of their file, tests
//! are left out.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, UseTree, Visibility};

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

/// Colons between two names of a path.
const PATH_COLONS: usize = 2;

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

    fn visit_item_fn(&mut self, item: &ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.push_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &Macro) {
        self.add_tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
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

    /// Adds the paths in the arguments of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == PATH_COLONS && !path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.push_path(std::mem::take(&mut path));
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.add_tokens(group.stream()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        self.push_path(path);
    }

    /// Adds a path of the code; one name alone is no import.
    fn push_path(&mut self, segments: Vec<String>) {
        if let [_, .., last] = segments.as_slice() {
            let name = last.clone();
            self.imports.push(Import { segments, name, is_exported: false, inside: self.inside.clone() });
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

    #[test]
    fn paths_in_code_and_in_macros_are_read() {
        let text = "fn f(x: super::A) -> u8 { g::h(); print!(\"{}\", crate::b::C::new(x::y)); x } #[cfg(test)] fn t() { z::z() }";
        let paths: Vec<String> = read(text).unwrap().iter().map(|import| import.segments.join("::")).collect();
        assert_eq!(paths, ["super::A", "g::h", "crate::b::C::new", "x::y"]);
    }
}
