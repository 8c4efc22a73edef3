import { attributeError, compareText, valueError } from "@aenv/benchmark";
import { repr } from "../../python/repr.ts";
import { bind } from "../../python/signature.ts";
import type { PyObject } from "../../python/values/objects.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { copy, type Memo } from "../database/copy.ts";
import { hashDatabase } from "../database/hash.ts";
import { updated } from "../database/merge.ts";
import type { Helper, Side, Tool } from "./tool.ts";

/** One side's tools and helpers, under the class name that signature errors print. */
export interface ToolkitDefinition<Db extends PyObject = PyObject, Memory extends PyValue = PyValue> {
  readonly className: string;
  /** In the order in which they are listed. */
  readonly tools: readonly Tool<Side<Db, Memory>>[];
  readonly helpers: readonly Helper<Side<Db, Memory>>[];
  /** The initial state outside the database. */
  readonly memory?: () => Memory;
}

/** One side of a running environment. Its database can be replaced, even by one of another model. */
export class Toolkit {
  readonly className: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly helpers: ReadonlyMap<string, Helper>;
  readonly memory: PyValue;
  db: PyObject;
  readonly #definition: ToolkitDefinition;

  constructor(definition: ToolkitDefinition, db: PyObject, memory: PyValue = definition.memory?.() ?? null) {
    this.#definition = definition;
    this.className = definition.className;
    this.tools = byName(definition.tools);
    this.helpers = byName(definition.helpers);
    this.memory = memory;
    this.db = db;
  }

  hasTool(name: string): boolean {
    return this.tools.has(name);
  }

  /** Calls a tool, also a discoverable one. */
  useTool(name: string, args: Dict): PyValue {
    const tool = this.tools.get(name);
    if (tool === undefined) throw valueError(`Tool '${name}' not found.`);
    return this.#run(tool, args);
  }

  /** Calls a tool or a helper, as initial states and assertions do. */
  call(name: string, args: Dict): PyValue {
    const target = this.helpers.get(name) ?? this.tools.get(name);
    if (target === undefined) throw attributeError(this.className, name);
    return this.#run(target, args);
  }

  /** The listed tools: all, or those in `include`. */
  listTools(include: readonly string[] | null = null): readonly Tool[] {
    const listed = [...this.tools.values()].filter(({ isDiscoverable }) => !isDiscoverable);
    if (include === null) return listed;
    const names = listed.map(({ name }) => name);
    const unknown = include.filter((name) => !names.includes(name));
    if (unknown.length > 0) {
      throw valueError(`Tool(s) not found: ${repr(unknown.sort(compareText))}. Available: ${repr(names.sort(compareText))}`);
    }
    return listed.filter(({ name }) => include.includes(name));
  }

  updateDb(data: Dict | null): void {
    this.db = updated(this.db, data ?? new Dict());
  }

  dbHash(): string {
    return hashDatabase(this.db);
  }

  /** A copy of this side with its own state. With one `memo`, a database that both sides share stays shared. */
  fork(memo: Memo): Toolkit {
    return new Toolkit(this.#definition, copy(this.db, memo), copy(this.memory, memo));
  }

  #run(target: Helper, args: Dict): PyValue {
    return target.run(bind(`${this.className}.${target.name}`, target.parameters, args), this);
  }
}

const named = new WeakMap<readonly Helper[], ReadonlyMap<string, Helper>>();

/** All instances of a domain share one map, to save memory. */
function byName<T extends Helper>(items: readonly T[]): ReadonlyMap<string, T> {
  let known = named.get(items);
  if (known === undefined) {
    known = new Map(items.map((item) => [item.name, item]));
    named.set(items, known);
  }
  return known as ReadonlyMap<string, T>;
}
