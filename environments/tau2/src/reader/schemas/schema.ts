import { isEllipsis } from "../../python/syntax/atoms.ts";
import { type Call, findKeyword, type Node } from "../../python/syntax/node.ts";
import { ReaderError } from "../error.ts";
import { evaluate } from "../python/constants.ts";
import { cleanIndent } from "../python/docstring.ts";
import type { Class } from "../python/module.ts";
import type { Project, Scope } from "../python/project.ts";
import { parseExpression } from "../python/source.ts";
import { genericName, isReference, LIMITS, literal, type Schema, simpleSchema, sorted, titleOf } from "./json-schema.ts";

/** One field of a model, or one parameter of a tool. */
export interface Field {
  name: string;
  annotation: Node | null;
  default: Node | null;
  description: string | null;
  scope: Scope;
}

/** Writes JSON Schemas of Python types exactly as pydantic does, including titles, definitions and key order. */
export class SchemaWriter {
  readonly #project: Project;
  readonly #definitions = new Map<string, Schema>();

  constructor(project: Project) {
    this.#project = project;
  }

  /** The schema of an object with these fields, with the definitions that they refer to. */
  write(title: string, fields: readonly Field[]): Schema {
    const schema = this.#object(title, fields);
    if (this.#definitions.size > 0) schema.$defs = Object.fromEntries([...this.#definitions].sort(([a], [b]) => (a < b ? -1 : 1)));
    return sorted(schema);
  }

  #object(title: string, fields: readonly Field[]): Schema {
    const properties: Schema = {};
    const required: string[] = [];
    for (const field of fields) {
      const { schema, isRequired } = this.#field(field);
      properties[field.name] = schema;
      if (isRequired) required.push(field.name);
    }
    return { properties, ...(required.length > 0 && { required }), title, type: "object" };
  }

  #field(field: Field): { schema: Schema; isRequired: boolean } {
    const { scope } = field;
    const type = field.annotation ? this.#type(field.annotation, scope) : {};
    const schema: Schema = { ...type };
    if (!isReference(type)) schema.title ??= titleOf(field.name);
    if (field.description) schema.description = field.description;
    let value = field.default;
    let isRequired = value === null;
    if (value?.kind === "call" && this.#isExternal(value.of, scope, "Field")) {
      Object.assign(schema, this.#fieldOptions(value, scope));
      isRequired = findKeyword(value, "default_factory") === null;
      value = findKeyword(value, "default") ?? value.positional[0] ?? null;
    }
    if (value !== null && isEllipsis(value)) isRequired = true;
    else if (value) {
      schema.default = evaluate(value, scope, this.#project);
      isRequired = false;
    }
    return { schema, isRequired };
  }

  /** The arguments of `Field(…)` except the default. */
  #fieldOptions(call: Call, scope: Scope): Schema {
    const options: Schema = {};
    for (const { name, value } of call.keywords) {
      if (name === null) continue;
      const key = name === "description" || name === "title" || name === "examples" ? name : LIMITS.get(name);
      if (key) options[key] = evaluate(value, scope, this.#project);
    }
    return options;
  }

  #isExternal(expression: Node, scope: Scope, name: string): boolean {
    if (expression.kind !== "name" && expression.kind !== "attribute") return false;
    const meaning = this.#project.resolve(expression, scope);
    return meaning.kind === "external" && meaning.name.split(".").at(-1) === name;
  }

  #type(expression: Node, scope: Scope): Schema {
    if (expression.kind === "constant") {
      if (expression.value === null) return { type: "null" };
      if (typeof expression.value === "string") return this.#type(parseExpression(expression.value), scope);
    }
    if (expression.kind === "binary" && expression.operator === "|") return this.#union([expression.left, expression.right], scope);
    if (expression.kind === "subscript") return this.#generic(expression, scope);
    if (expression.kind !== "name" && expression.kind !== "attribute") throw unread("this annotation", expression, scope);

    const meaning = this.#project.resolve(expression, scope);
    if (meaning.kind === "class") return this.#reference(meaning.class, meaning.scope, expression);
    if (meaning.kind === "alias") return this.#project.follow(meaning, () => this.#type(meaning.value, meaning.scope));
    const name = meaning.name.split(".").at(-1) as string;
    const simple = simpleSchema(name);
    if (simple === null) throw unread(`the type ${meaning.name}`, expression, scope);
    return simple;
  }

  #generic(expression: Node & { kind: "subscript" }, scope: Scope): Schema {
    const { of, items } = expression;
    const meaning = this.#project.resolve(of, scope);
    const name = meaning.kind === "external" ? (meaning.name.split(".").at(-1) as string) : "";
    const [first, second] = items;
    if (!first) throw unread("this annotation", expression, scope);
    switch (genericName(name)) {
      case "Optional":
        return this.#union([first, { kind: "constant", value: null, line: of.line }], scope);
      case "Union":
        return this.#union(items, scope);
      case "Literal":
        return literal(items.map((item) => evaluate(item, scope, this.#project)));
      case "list":
        return { items: this.#type(first, scope), type: "array" };
      case "set":
        return { items: this.#type(first, scope), type: "array", uniqueItems: true };
      case "dict": {
        const values = second ? this.#type(second, scope) : {};
        return { additionalProperties: Object.keys(values).length > 0 ? values : true, type: "object" };
      }
      case "tuple": {
        if (second !== undefined && isEllipsis(second)) return { items: this.#type(first, scope), type: "array" };
        const prefixItems = items.map((item) => this.#type(item, scope));
        return { maxItems: items.length, minItems: items.length, prefixItems, type: "array" };
      }
      case "Annotated": {
        const fields = items.slice(1).filter((item) => item.kind === "call" && this.#isExternal(item.of, scope, "Field"));
        return Object.assign(this.#type(first, scope), ...fields.map((field) => this.#fieldOptions(field as Call, scope)));
      }
    }
    throw unread("this generic type", expression, scope);
  }

  /** Nested unions are flattened, duplicates removed, and null comes last. */
  #union(items: readonly Node[], scope: Scope): Schema {
    const kinds: Schema[] = [];
    for (const item of items) {
      const schema = this.#type(item, scope);
      for (const kind of Array.isArray(schema.anyOf) && Object.keys(schema).length === 1 ? (schema.anyOf as Schema[]) : [schema]) {
        if (!kinds.some((known) => JSON.stringify(sorted(known)) === JSON.stringify(sorted(kind)))) kinds.push(kind);
      }
    }
    const ordered = [...kinds.filter((kind) => kind.type !== "null"), ...kinds.filter((kind) => kind.type === "null")];
    return ordered.length === 1 ? (ordered[0] as Schema) : { anyOf: ordered };
  }

  #reference(found: Class, scope: Scope, expression: Node): Schema {
    const reference = { $ref: `#/$defs/${found.name}` };
    if (this.#definitions.has(found.name)) return reference;
    const { classes, external } = this.#project.ancestryOf(found, scope);
    const bases = external.map((name) => name.split(".").at(-1) as string);
    const description = found.docstring ? { description: cleanIndent(found.docstring) } : {};
    // Registered before its fields are read, because a model may refer to itself.
    this.#definitions.set(found.name, {});
    if (bases.some((base) => ["Enum", "StrEnum", "IntEnum"].includes(base))) {
      const members = found.fields.filter((field) => field.value && !field.annotation && !field.name.startsWith("_"));
      const values = members.map((member) => evaluate(member.value as Node, scope, this.#project));
      this.#definitions.set(found.name, { ...literal(values), title: found.name, ...description });
    } else if (bases.includes("BaseModel")) {
      const model = this.#object(found.name, fieldsOf(classes));
      this.#definitions.set(found.name, { ...model, ...this.#extra(classes), ...description });
    } else {
      this.#definitions.delete(found.name);
      throw unread(`the class ${found.name}, which is neither a model nor an enumeration,`, expression, scope);
    }
    return reference;
  }

  /** The model's `additionalProperties`, if it configures extra fields. */
  #extra(classes: readonly { class: Class; scope: Scope }[]): Schema {
    for (const { class: one, scope } of classes) {
      const config = one.fields.find((field) => field.name === "model_config")?.value;
      const extra =
        config?.kind === "call"
          ? findKeyword(config, "extra")
          : config?.kind === "dict"
            ? config.entries.find(([key]) => key?.kind === "constant" && key.value === "extra")?.[1]
            : null;
      const value = extra ? evaluate(extra, scope, this.#project) : undefined;
      if (value !== undefined) return value === "ignore" ? {} : { additionalProperties: value === "allow" };
    }
    return {};
  }
}

/** Inherited fields come first; a redeclared field keeps its position. */
function fieldsOf(classes: readonly { class: Class; scope: Scope }[]): Field[] {
  const fields = new Map<string, Field>();
  for (const { class: one, scope } of classes.toReversed()) {
    for (const { name, annotation, value } of one.fields) {
      if (!annotation || name.startsWith("_") || isClassVariable(annotation)) continue;
      fields.set(name, { name, annotation, default: value, description: null, scope });
    }
  }
  fields.delete("model_config");
  return [...fields.values()];
}

function isClassVariable(annotation: Node): boolean {
  const of = annotation.kind === "subscript" ? annotation.of : annotation;
  return (of.kind === "name" || of.kind === "attribute") && of.name === "ClassVar";
}

function unread(what: string, expression: Node, scope: Scope): ReaderError {
  return new ReaderError(`${what} cannot be written as a JSON Schema`, expression.line, scope.file);
}
