import { fieldsOf, MODEL, PyObject } from "../../python/values/objects.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";

/** `model_dump()`: plain dicts and lists; enum members and dates are kept. */
export function dump(value: PyValue): PyValue {
  if (value instanceof PyObject) return new Dict(fieldsOf(value).map(([name, field]) => [name, dump(field)]));
  if (Array.isArray(value)) return value.map(dump);
  return value instanceof Dict ? new Dict([...value].map(([key, item]) => [key, dump(item)])) : value;
}

/** A new database with `update` merged in: dicts are merged, other values replaced; then the whole is validated again. */
export function updated(database: PyObject, update: Dict): PyObject {
  const base = dump(database);
  if (base instanceof Dict) merge(base, update);
  return database[MODEL].validate(base);
}

function merge(base: Dict, update: Dict): void {
  for (const [key, value] of update) {
    const existing = base.get(key);
    if (existing instanceof Dict && value instanceof Dict) merge(existing, value);
    else base.set(key, value);
  }
}
