import { PyError, typeError } from "@aenv/benchmark";
import { isIn, lookup } from "./equality.ts";
import { repr } from "./repr.ts";
import { typeName } from "./values/types.ts";
import { Dict, isInt, PyTuple, type PyValue } from "./values/values.ts";

/** `for x in value`: the items of a list, the characters of a text, the keys of a dict. */
export function elementsOf(value: PyValue): Iterable<PyValue> {
  if (typeof value === "string" || Array.isArray(value)) return value;
  if (value instanceof Dict) return value.keys();
  if (value instanceof PyTuple) return value.items;
  throw typeError(`'${typeName(value)}' object is not iterable`);
}

/** `len(value)`. */
export function lengthOf(value: PyValue): number {
  if (typeof value === "string") return [...value].length;
  if (Array.isArray(value)) return value.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof PyTuple) return value.items.length;
  throw typeError(`object of type '${typeName(value)}' has no len()`);
}

/** `item in container`. */
export function contains(container: PyValue, item: PyValue): boolean {
  if (typeof container === "string") {
    if (typeof item !== "string") throw typeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    return container.includes(item);
  }
  if (container instanceof Dict) return lookup(container, item) !== undefined;
  if (Array.isArray(container)) return isIn(item, container);
  if (container instanceof PyTuple) return isIn(item, container.items);
  throw typeError(`argument of type '${typeName(container)}' is not iterable`);
}

/** `container[key]`. */
export function itemAt(container: PyValue, key: PyValue): PyValue {
  if (container instanceof Dict) {
    const value = lookup(container, key);
    if (value === undefined) throw new PyError("KeyError", repr(key));
    return value;
  }
  const isText = typeof container === "string";
  if (!isText && !Array.isArray(container)) throw typeError(`'${typeName(container)}' object is not subscriptable`);
  if (!isInt(key) && typeof key !== "boolean") {
    const wanted = isText ? "string indices must be integers" : "list indices must be integers or slices";
    throw typeError(`${wanted}, not ${isText ? `'${typeName(key)}'` : typeName(key)}`);
  }
  const items: readonly PyValue[] = isText ? [...container] : container;
  const item = items.at(Number(key));
  if (item === undefined || Number(key) < -items.length)
    throw new PyError("IndexError", `${isText ? "string" : "list"} index out of range`);
  return item;
}
