/** Maps the names of tools to names for a model, and back. */
export interface ToolNames {
  /** The model's name of a tool of the set. */
  forModel(tool: string): string;
  /** The tool with this name; null if there is none. */
  findTool(name: string): string | null;
}

const MAX_LENGTH = 64;

/**
 * Names that every model API accepts (`^[a-zA-Z0-9_-]{1,64}$`) for a set of tools. `shop@1.0.0/cancel_order` becomes
 * `cancel_order`, independent of the version. Other characters become `_`. If that makes two names equal, or a name is too
 * long, a short hash is appended. The names depend only on the set, not on its order.
 *
 * @example
 * const names = toolNames(["shop@1.0.0/orders.cancel"]);
 * names.forModel("shop@1.0.0/orders.cancel"); // "orders_cancel"
 * names.findTool("orders_cancel");            // "shop@1.0.0/orders.cancel"
 */
export function toolNames(tools: Iterable<string>, { prefix = "" }: { readonly prefix?: string } = {}): ToolNames {
  const wanted = [...new Set(tools)].sort().map((tool) => ({ tool, preferred: prefix + withoutEnvironment(tool) }));
  const similar = new Map<string, string[]>();
  for (const { preferred } of wanted) similar.set(collisionKey(preferred), [...(similar.get(collisionKey(preferred)) ?? []), preferred]);

  const taken = new Set<string>();
  const nameOf = new Map<string, string>();
  const assign = (tool: string, name: string) => {
    taken.add(collisionKey(name));
    nameOf.set(tool, name);
  };
  // Names without a hash are assigned first, so that a hashed name cannot take a name that an author wrote.
  for (const { tool, preferred } of wanted) {
    if (needsNoHash(preferred, similar.get(collisionKey(preferred)) ?? [])) assign(tool, fit(preferred));
  }
  for (const { tool, preferred } of wanted) {
    if (!nameOf.has(tool)) assign(tool, hashed(preferred, taken));
  }

  const toolOf = new Map([...nameOf].map(([tool, name]) => [name, tool]));
  return {
    forModel(tool) {
      const name = nameOf.get(tool);
      if (name === undefined) throw new TypeError(`'${tool}' is not one of the tools: ${[...nameOf.keys()].join(", ")}`);
      return name;
    },
    findTool: (name) => toolOf.get(name) ?? null,
  };
}

function withoutEnvironment(tool: string): string {
  return tool.slice(tool.indexOf("/") + 1);
}

/** A name needs no hash if no other name collides with it, or if it is the only valid one of those that collide. */
function needsNoHash(preferred: string, similar: readonly string[]): boolean {
  if (preferred === "" || preferred.length > MAX_LENGTH) return false;
  if (similar.length === 1) return true;
  return isValid(preferred) && similar.filter(isValid).length === 1;
}

function isValid(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name);
}

function fit(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, MAX_LENGTH);
}

/** Names with the same key collide: some frameworks write `_` for `-`. */
function collisionKey(name: string): string {
  return fit(name).replaceAll("-", "_");
}

function hashed(preferred: string, taken: ReadonlySet<string>): string {
  for (let round = 0; ; round++) {
    const end = `_${hash(`${preferred}#${round}`)}`;
    const name = (fit(preferred) || "tool").slice(0, MAX_LENGTH - end.length) + end;
    if (!taken.has(collisionKey(name))) return name;
  }
}

/** FNV-1a, as eight hexadecimal digits: it needs no crypto, so it runs everywhere. Collisions are checked by the caller. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
