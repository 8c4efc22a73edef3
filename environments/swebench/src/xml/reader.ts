import { SaxesParser } from "saxes";
import { NAME, NC_NAME } from "./names.ts";
import { type Attribute, type Bindings, bind, expandAttributes, expandElement, notWellFormed, ROOT_BINDINGS } from "./namespaces.ts";

export interface Element {
  /** The local name; with a namespace `{uri}name`. */
  readonly name: string;
  readonly attributes: readonly Attribute[];
  /** Position in the document after the last element inside of this one. */
  readonly end: number;
}

/** The elements of an XML document in document order, the root first. Text is not kept. */
export type Document = readonly Element[];

/**
 * Reads one element with its content: XML 1.0 with namespaces, without a document type. Raises ParseError. Names follow an older edition
 * than that of the parser, and namespaces are resolved here: the parser's time for them grows with the square of the depth.
 */
export function readXml(text: string): Document {
  const elements: { name: string; attributes: readonly Attribute[]; end: number }[] = [];
  const open: { readonly at: number; readonly bindings: Bindings }[] = [];
  const parser = new SaxesParser({ position: false });
  parser.on("error", ({ message }) => notWellFormed(message));
  parser.on("doctype", () => notWellFormed("a document type is not supported"));
  parser.on("processinginstruction", ({ target }) => assertName(NC_NAME, target));
  parser.on("opentag", (tag) => {
    const raw = Object.entries(tag.attributes).map(([name, value]) => ({ name, value }));
    for (const name of [tag.name, ...Object.keys(tag.attributes)]) assertName(NAME, name);
    const bindings = bind(open.at(-1)?.bindings ?? ROOT_BINDINGS, raw);
    open.push({ at: elements.length, bindings });
    elements.push({ name: expandElement(tag.name, bindings), attributes: expandAttributes(raw, bindings), end: 0 });
  });
  parser.on("closetag", () => {
    const element = elements[open.pop()?.at ?? -1];
    if (element !== undefined) element.end = elements.length;
  });
  if (/[\ufffe\uffff]/.test(text) || !text.isWellFormed()) notWellFormed("it has a character that XML does not allow");
  parser.write(text).close();
  return elements;
}

export function findAttribute(element: Element, name: string): string | null {
  for (const attribute of element.attributes) if (attribute.name === name) return attribute.value;
  return null;
}

function assertName(pattern: RegExp, name: string): void {
  if (!pattern.test(name)) notWellFormed(`'${name}' is not a name`);
}
