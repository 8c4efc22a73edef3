export interface Attribute {
  /** The local name; with a namespace `{uri}name`. */
  readonly name: string;
  readonly value: string;
}

export interface Element {
  /** The local name; with a namespace `{uri}name`. */
  readonly name: string;
  readonly attributes: readonly Attribute[];
  /** Position in the document after the last element inside of this one. */
  readonly end: number;
}

/** The elements of an XML document in document order, the root first. Text is not kept. */
export type Document = readonly Element[];

export function findAttribute(element: Element, name: string): string | null {
  for (const attribute of element.attributes) if (attribute.name === name) return attribute.value;
  return null;
}
