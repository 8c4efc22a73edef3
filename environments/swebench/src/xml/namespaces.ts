import { notWellFormed } from "./error.ts";

const XML_URI = "http://www.w3.org/XML/1998/namespace";
const XMLNS_URI = "http://www.w3.org/2000/xmlns/";

/** The prefixes that are bound at an element; the default namespace has the prefix "". */
export type Bindings = ReadonlyMap<string, string>;

export const ROOT_BINDINGS: Bindings = new Map([["xml", XML_URI]]);

/** The bindings inside an element with these attributes. */
export function bind(outer: Bindings, attributes: ReadonlyMap<string, string>): Bindings {
  let inner: Map<string, string> | null = null;
  for (const [name, uri] of attributes) {
    if (!isBinding(name)) continue;
    const prefix = name.slice("xmlns:".length);
    checkBinding(prefix, uri);
    inner ??= new Map(outer);
    inner.set(prefix, uri);
  }
  return inner ?? outer;
}

function isBinding(attribute: string): boolean {
  return attribute.startsWith("xmlns") && (attribute.length === 5 || attribute[5] === ":");
}

function checkBinding(prefix: string, uri: string): void {
  if (prefix === "xmlns") notWellFormed("the prefix 'xmlns' is reserved");
  if ((prefix === "xml") !== (uri === XML_URI)) notWellFormed("the prefix 'xml' and its namespace belong together");
  if (uri === XMLNS_URI) notWellFormed("the namespace of 'xmlns' cannot be bound");
  if (prefix !== "" && uri === "") notWellFormed(`the prefix '${prefix}' is bound to nothing`);
  // The reader of the reference separates namespace and name with a brace.
  if (uri.includes("}")) notWellFormed(`the namespace '${uri}' has a brace`);
}

export function expandElement(name: string, bindings: Bindings): string {
  return expand(name, bindings, bindings.get("") ?? "");
}

/** Attributes without a prefix have no namespace. Declarations of namespaces are left out. */
export function expandAttributes(attributes: ReadonlyMap<string, string>, bindings: Bindings): Map<string, string> {
  const expanded = new Map<string, string>();
  for (const [name, value] of attributes) {
    if (isBinding(name)) continue;
    const full = expand(name, bindings, "");
    if (expanded.has(full)) notWellFormed(`the attribute '${name}' occurs twice`);
    expanded.set(full, value);
  }
  return expanded;
}

function expand(name: string, bindings: Bindings, defaultUri: string): string {
  const colon = name.indexOf(":");
  const uri = colon < 0 ? defaultUri : bindings.get(name.slice(0, colon));
  if (uri === undefined) return notWellFormed(`the prefix of '${name}' is not bound`);
  return uri === "" ? name : `{${uri}}${name.slice(colon + 1)}`;
}
