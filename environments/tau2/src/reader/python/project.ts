import type { Node } from "../../python/syntax/node.ts";
import type { Checkout } from "../checkout/checkout.ts";
import { inFile, ReaderError } from "../error.ts";
import { type Class, type Module, readModule } from "./module.ts";

export interface Scope {
  file: string;
  /** `tau2.domains.mock.tools` */
  name: string;
  module: Module;
}

/** The definition of a name. `external`: no file of the checkout defines it; `name` is its dotted name. */
export type Resolved =
  | { kind: "class"; class: Class; scope: Scope }
  | { kind: "alias"; value: Node; scope: Scope }
  | { kind: "external"; name: string };

const MAX_HOPS = 50;

/** The Python modules of a checkout, parsed on first use. */
export class Project {
  readonly #checkout: Checkout;
  readonly #scopes = new Map<string, Scope | null>();
  readonly #following = new Set<Node>();

  constructor(checkout: Checkout) {
    this.#checkout = checkout;
  }

  find(name: string): Scope | null {
    const known = this.#scopes.get(name);
    if (known !== undefined) return known;
    const path = `src/${name.replaceAll(".", "/")}`;
    const file = [`${path}.py`, `${path}/__init__.py`].find((candidate) => this.#checkout.has(candidate));
    const scope = file === undefined ? null : { file, name, module: inFile(file, () => readModule(this.#checkout.text(file))) };
    this.#scopes.set(name, scope);
    return scope;
  }

  /** Resolves `Name` or `module.Name` in a scope. */
  resolve(expression: Node, scope: Scope): Resolved {
    const path = pathOf(expression);
    if (!path) throw new ReaderError("expected the name of a type", expression.line, scope.file);
    return this.#lookUp(path, scope, 0);
  }

  #lookUp(path: string[], scope: Scope, hops: number): Resolved {
    const [head, ...rest] = path as [string, ...string[]];
    if (hops > MAX_HOPS) throw new ReaderError(`the name ${head} is defined by itself`, undefined, scope.file);
    if (rest.length === 0) {
      const found = scope.module.classes.get(head);
      if (found) return { kind: "class", class: found, scope };
      const alias = scope.module.assignments.get(head)?.value;
      if (alias) return { kind: "alias", value: alias, scope };
    }
    const imported = scope.module.imports.get(head);
    if (imported) {
      const from = this.#absolute(imported.module, scope);
      return this.#follow(imported.name === null ? from : `${from}.${imported.name}`, rest, hops);
    }
    for (const star of scope.module.stars) {
      const there = this.find(this.#absolute(star, scope));
      const found = there && this.#lookUp(path, there, hops + 1);
      if (found && found.kind !== "external") return found;
    }
    return { kind: "external", name: path.join(".") };
  }

  #follow(target: string, rest: string[], hops: number): Resolved {
    const parts = [...target.split("."), ...rest];
    for (let length = parts.length - 1; length > 0; length--) {
      const scope = this.find(parts.slice(0, length).join("."));
      if (scope) return this.#lookUp(parts.slice(length), scope, hops + 1);
    }
    return { kind: "external", name: parts.join(".") };
  }

  #absolute(name: string, scope: Scope): string {
    const dots = /^\.*/.exec(name)?.[0].length ?? 0;
    if (dots === 0) return name;
    const isPackage = scope.file.endsWith("/__init__.py");
    const parts = scope.name.split(".");
    const base = parts.slice(0, parts.length - dots + (isPackage ? 1 : 0));
    return [...base, ...name.slice(dots).split(".").filter(Boolean)].join(".");
  }

  /** Runs `read` for the value of an alias; throws if the alias refers to itself. */
  follow<T>(alias: Resolved & { kind: "alias" }, read: () => T): T {
    if (this.#following.has(alias.value)) throw new ReaderError("this name is defined by itself", alias.value.line, alias.scope.file);
    this.#following.add(alias.value);
    try {
      return read();
    } finally {
      this.#following.delete(alias.value);
    }
  }

  /** The class and its base classes, nearest first; `external` has the dotted names of bases that no file of the checkout declares. */
  ancestryOf(found: Class, scope: Scope): { classes: { class: Class; scope: Scope }[]; external: string[] } {
    const classes: { class: Class; scope: Scope }[] = [];
    const external: string[] = [];
    const visit = (one: Class, where: Scope): void => {
      if (classes.some((known) => known.class === one)) return;
      classes.push({ class: one, scope: where });
      for (const base of one.bases) {
        const path = pathOf(base.kind === "subscript" ? base.of : base);
        if (!path) continue;
        const meaning = this.#lookUp(path, where, 0);
        if (meaning.kind === "class") visit(meaning.class, meaning.scope);
        else if (meaning.kind === "external") external.push(meaning.name);
      }
    };
    visit(found, scope);
    return { classes, external };
  }
}

export function pathOf(expression: Node): string[] | null {
  if (expression.kind === "name") return [expression.name];
  if (expression.kind !== "attribute") return null;
  const of = pathOf(expression.of);
  return of && [...of, expression.name];
}
