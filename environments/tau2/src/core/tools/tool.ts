import type { Parameter } from "../../python/signature.ts";
import type { PyValue } from "../../python/values/values.ts";
import { type JsonSchema, type ParameterSpecs, parametersSchema } from "./parameters.ts";

export type ToolKind = "read" | "write" | "think" | "generic";

/** What tools operate on: one side's database, and its state outside the database. */
export interface Side<Db, Memory = null> {
  readonly db: Db;
  readonly memory: Memory;
}

/** A function that can be called by name with keyword arguments. */
export interface Helper<S = unknown> {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  run(args: Readonly<Record<string, PyValue>>, side: S): PyValue;
}

export interface Tool<S = unknown> extends Helper<S> {
  readonly kind: ToolKind;
  /** Whether a replay must run it again. */
  readonly mutatesState: boolean;
  /** A discoverable tool can be called but is not listed. */
  readonly isDiscoverable: boolean;
  readonly summary: string;
  readonly details: string;
  readonly schema: JsonSchema;
}

/** Required parameters are listed by name, optional ones with their defaults: `optionals: { note: null }`. */
export interface HelperSource<S, N extends string, O extends string> {
  readonly name: string;
  readonly parameters: readonly N[];
  readonly optionals?: Readonly<Record<O, PyValue>>;
  run(args: { readonly [K in N | O]: PyValue }, side: S): PyValue;
}

export interface ToolSource<S, P extends ParameterSpecs> {
  readonly name: string;
  /** One sentence, in our own words. */
  readonly summary: string;
  readonly details?: string;
  readonly parameters: P;
  /** Schemas that the parameters refer to as `#/$defs/<name>`. */
  readonly definitions?: JsonSchema;
  readonly mutatesState?: boolean;
  readonly isDiscoverable?: boolean;
  run(args: { readonly [K in keyof P & string]: PyValue }, side: S): PyValue;
}

/** Builders for the tools of one side: `const { read, write, helper } = toolsOf<Side<ShopDb>>()`. */
export function toolsOf<S>() {
  const make =
    (kind: ToolKind) =>
    <const P extends ParameterSpecs>(source: ToolSource<S, P>): Tool<S> => {
      const details = source.details ?? "";
      return {
        name: source.name,
        kind,
        mutatesState: source.mutatesState ?? kind === "write",
        isDiscoverable: source.isDiscoverable ?? false,
        summary: source.summary,
        details,
        parameters: Object.entries(source.parameters).map(([name, { defaultValue }]) =>
          defaultValue === undefined ? { name } : { name, defaultValue },
        ),
        schema: {
          type: "function",
          function: {
            name: source.name,
            description: details === "" ? source.summary : `${source.summary}\n\n${details}`,
            parameters: parametersSchema(source.parameters, source.definitions ?? null),
          },
        },
        run: (args, side) => source.run(args as Parameters<typeof source.run>[0], side),
      };
    };
  /** Not a tool, but initial states and assertions can call it. */
  const helper = <const N extends string = never, const O extends string = never>(source: HelperSource<S, N, O>): Helper<S> => ({
    name: source.name,
    parameters: [
      ...source.parameters.map((name) => ({ name })),
      ...Object.entries<PyValue>(source.optionals ?? {}).map(([name, defaultValue]) => ({ name, defaultValue })),
    ],
    run: (args, side) => source.run(args as Parameters<typeof source.run>[0], side),
  });
  return { read: make("read"), write: make("write"), think: make("think"), generic: make("generic"), helper };
}
