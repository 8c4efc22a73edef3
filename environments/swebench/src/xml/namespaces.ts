import { PyError } from "@aenv/benchmark";

const XML_URI = "http://www.w3.org/XML/1998/namespace";
const XMLNS_URI = "http://www.w3.org/2000/xmlns/";

export interface Attribute {
  /** The local name; with a namespace `{uri}name`. */
  readonly name: string;
  readonly value: string;
}

/** The prefixes that are bound at an element; the default namespace has the prefix "". */
export type Bindings = ReadonlyMap<string, string>;

export const ROOT_BINDINGS: Bindings = new Map([["xml", XML_URI]]);

/** The bindings inside an element with these attributes. */
export function bind(outer: Bindings, attributes: readonly Attribute[]): Bindings {
  if (!attributes.some(isQualified)) return outer;
  let inner: Map<string, string> | null = null;
  for (const { name, value: uri } of attributes) {
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

/** Has a prefix, or declares the default namespace. */
function isQualified({ name }: Attribute): boolean {
  return name.includes(":") || name === "xmlns";
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
  if (bindings === ROOT_BINDINGS && !name.includes(":")) return name;
  return expand(name, bindings, bindings.get("") ?? "");
}

/** Attributes without a prefix have no namespace. Declarations of namespaces are left out. */
export function expandAttributes(attributes: readonly Attribute[], bindings: Bindings): readonly Attribute[] {
  if (!attributes.some(isQualified)) return attributes;
  const expanded = attributes
    .filter(({ name }) => !isBinding(name))
    .map(({ name, value }) => ({ name: expand(name, bindings, ""), value }));
  if (new Set(expanded.map(({ name }) => name)).size < expanded.length) notWellFormed("an attribute occurs twice");
  return expanded;
}

function expand(name: string, bindings: Bindings, defaultUri: string): string {
  const colon = name.indexOf(":");
  const uri = colon < 0 ? defaultUri : bindings.get(name.slice(0, colon));
  if (uri === undefined) return notWellFormed(`the prefix of '${name}' is not bound`);
  return uri === "" ? name : `{${uri}}${name.slice(colon + 1)}`;
}

/** Throws the error for text that is not well-formed. */
export function notWellFormed(problem: string): never {
  throw new PyError("ParseError", `XML is not well-formed: ${problem}`);
}
