import { typeError } from "@aenv/benchmark";
import { MODEL, PyObject } from "../values/objects.ts";
import { typeName } from "../values/types.ts";
import { Dict, type PyValue } from "../values/values.ts";
import { type Issue, validationError } from "./issues.ts";

/** The result for an invalid input; the report has the reasons. */
export const INVALID = Symbol("invalid");

/** The current path of a validation, and the errors so far. */
export class Report {
  readonly issues: Issue[] = [];
  readonly path: (string | number)[] = [];

  refuse(type: string, message: string, input: PyValue): typeof INVALID {
    this.issues.push({ path: [...this.path], type, message, input });
    return INVALID;
  }

  /** Validates `input` at one more path step. */
  at<T extends PyValue>(step: string | number, type: Type<T>, input: PyValue): T | typeof INVALID {
    this.path.push(step);
    const value = type.read(input, this);
    this.path.pop();
    return value;
  }
}

/** Converts an input into a field's value; the coercions are pydantic's. */
export interface Type<T extends PyValue = PyValue> {
  read(input: PyValue, report: Report): T | typeof INVALID;
}

/** An optional field. Its default is not validated. */
export interface Optional<T extends PyValue = PyValue> {
  readonly type: Type<T>;
  readonly defaultValue: () => PyValue;
}

export type Fields = Readonly<Record<string, Type | Optional>>;
type Value<F> = F extends Type<infer T> ? T : F extends Optional<infer T> ? T : never;

/** The instances of a model: `type Task = Instance<typeof Task>`. */
export type Instance<M> = M extends Model<infer F> ? PyObject & { -readonly [K in keyof F]: Value<F[K]> } : never;
type InstanceOf<F extends Fields> = PyObject & { -readonly [K in keyof F]: Value<F[K]> };

export interface ModelOptions {
  /** Whether unknown keys are an error; by default they are dropped. */
  readonly extra?: "forbid" | "ignore";
  /** The model's module in the reference; a few messages print it. */
  readonly module?: string;
}

/** A record type: fields in order, with types and defaults. */
export class Model<F extends Fields = Fields> implements Type<InstanceOf<F>> {
  readonly name: string;
  readonly module: string;
  readonly fields: F;
  readonly forbidsExtra: boolean;
  readonly #entries: readonly (readonly [string, Type, (() => PyValue) | null])[];
  readonly #make: new () => PyObject;

  constructor(name: string, fields: F, options: ModelOptions) {
    this.name = name;
    this.module = options.module ?? "";
    this.fields = fields;
    this.forbidsExtra = options.extra === "forbid";
    this.#entries = Object.entries(fields).map(([key, field]) =>
      "defaultValue" in field ? [key, field.type, field.defaultValue] : [key, field, null],
    );
    this.#make = class extends PyObject {};
    Object.defineProperty(this.#make.prototype, MODEL, { value: this, enumerable: false });
  }

  /** `Model(**fields)`: validates, and raises a ValidationError that names this model. */
  create(fields: Dict | Readonly<Record<string, PyValue>>): InstanceOf<F> {
    return this.validate(fields instanceof Dict ? fields : Dict.of(fields));
  }

  /** `Model(**value)` for a value that may not be a mapping at all. */
  unpack(value: PyValue): InstanceOf<F> {
    if (value instanceof Dict) return this.validate(value);
    throw typeError(`${this.module}.${this.name}() argument after ** must be a mapping, not ${typeName(value)}`);
  }

  /** Reads a dict, or takes an instance as it is. */
  validate(input: PyValue): InstanceOf<F> {
    const report = new Report();
    const value = this.read(input, report);
    if (value === INVALID) throw validationError(this.name, report.issues);
    return value;
  }

  isInstance(value: PyValue): value is InstanceOf<F> {
    return value instanceof PyObject && value[MODEL] === (this as Model);
  }

  read(input: PyValue, report: Report): InstanceOf<F> | typeof INVALID {
    if (this.isInstance(input)) return input;
    if (!(input instanceof Dict)) {
      return report.refuse("model_type", `Input should be a valid dictionary or instance of ${this.name}`, input);
    }
    const before = report.issues.length;
    const made = new this.#make() as PyObject & Record<string, PyValue>;
    for (const [key, type, defaultValue] of this.#entries) {
      const given = input.get(key);
      if (given !== undefined) {
        const value = report.at(key, type, given);
        if (value !== INVALID) made[key] = value;
      } else if (defaultValue !== null) made[key] = defaultValue();
      else {
        report.path.push(key);
        report.refuse("missing", "Field required", input);
        report.path.pop();
      }
    }
    if (this.forbidsExtra) this.#refuseExtra(input, report);
    return report.issues.length === before ? (made as InstanceOf<F>) : INVALID;
  }

  /** A copy of an instance with each field copied by `copyField`; not validated. */
  copy(instance: PyObject, copyField: (value: PyValue) => PyValue): PyObject {
    const fields = instance as PyObject & Readonly<Record<string, PyValue>>;
    const made = new this.#make() as PyObject & Record<string, PyValue>;
    for (const key of Object.keys(fields)) made[key] = copyField(fields[key] as PyValue);
    return made;
  }

  #refuseExtra(input: Dict, report: Report): void {
    for (const [key, value] of input) {
      if (typeof key === "string" && Object.hasOwn(this.fields, key)) continue;
      report.path.push(String(key));
      report.refuse("extra_forbidden", "Extra inputs are not permitted", value);
      report.path.pop();
    }
  }
}

export function model<const F extends Fields>(name: string, fields: F, options: ModelOptions = {}): Model<F> {
  return new Model(name, fields, options);
}
