/** An element of an XML document. Text is not kept. */
export interface Element {
  /** The local name; with a namespace `{uri}name`. */
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly Element[];
}

/** All elements of a name inside of an element, in document order. */
export function descendants(element: Element, name: string): Element[] {
  const found: Element[] = [];
  const open = element.children.toReversed();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.name === name) found.push(next);
    for (let i = next.children.length - 1; i >= 0; i--) open.push(next.children[i] as Element);
  }
  return found;
}
