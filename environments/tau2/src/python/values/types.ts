import { PyDate, PyDateTime } from "./datetime.ts";
import { PyEnum } from "./enums.ts";
import { MODEL, PyObject } from "./objects.ts";
import { Dict, PyFloat, PyOpaque, PyTuple, type PyValue } from "./values.ts";

/** `type(value).__name__`. */
export function typeName(value: PyValue): string {
  if (value === null) return "NoneType";
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "number":
    case "bigint":
      return "int";
    case "string":
      return "str";
  }
  if (value instanceof PyFloat) return "float";
  if (Array.isArray(value)) return "list";
  if (value instanceof Dict) return "dict";
  if (value instanceof PyTuple) return "tuple";
  if (value instanceof PyDate) return "date";
  if (value instanceof PyDateTime) return "datetime";
  if (value instanceof PyEnum || value instanceof PyOpaque) return value.type;
  if (value instanceof PyObject) return value[MODEL].name;
  throw new Error(`not a Python value: ${String(value)}`);
}

/** `str(type(value))`: builtins by name, models with their module. */
export function typeRepr(value: PyValue): string {
  if (value instanceof PyDate || value instanceof PyDateTime) return `<class 'datetime.${typeName(value)}'>`;
  if (value instanceof PyObject && value[MODEL].module !== "") return `<class '${value[MODEL].module}.${value[MODEL].name}'>`;
  return `<class '${typeName(value)}'>`;
}
