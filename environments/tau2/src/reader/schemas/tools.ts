import { findKeyword, type Node } from "../../python/syntax/node.ts";
import { ReaderError } from "../error.ts";
import { evaluate } from "../python/constants.ts";
import { readDocstring } from "../python/docstring.ts";
import type { Class, Method } from "../python/module.ts";
import { type Project, pathOf, type Scope } from "../python/project.ts";
import type { Schema } from "./json-schema.ts";
import { SchemaWriter } from "./schema.ts";

export type Requestor = "assistant" | "user";

/** A tool as the benchmark declares it, in the format of a data directory's `schemas/<domain>.json`. */
export interface ToolSchema {
  requestor: Requestor;
  name: string;
  type: string;
  mutates_state: boolean;
  discoverable: boolean;
  /** Missing for discoverable tools, which are not offered to models. */
  openai_schema?: { type: "function"; function: { name: string; description: string; parameters: Schema } };
  short_desc?: string;
  long_desc?: string;
  qualname: string;
}

export interface Toolkit {
  tools: ToolSchema[];
  /** Tools with an unsupported signature, and why. */
  unread: { name: string; reason: string }[];
}

/** The tools of a class: its own in source order, then inherited ones. */
export function readToolkit(found: Class, scope: Scope, requestor: Requestor, project: Project): Toolkit {
  const toolkit: Toolkit = { tools: [], unread: [] };
  const seen = new Set<string>();
  for (const ancestor of project.ancestryOf(found, scope).classes) {
    for (const method of ancestor.class.methods) {
      if (seen.has(method.name)) continue;
      const mark = decoratorOf(method, ancestor.scope, project);
      if (!mark) continue;
      seen.add(method.name);
      try {
        const qualname = `${ancestor.class.name}.${method.name}`;
        toolkit.tools.push({
          requestor,
          name: method.name,
          ...mark,
          ...descriptionOf(method, mark.discoverable, ancestor.scope, project),
          qualname,
        });
      } catch (error) {
        if (!(error instanceof ReaderError)) throw error;
        toolkit.unread.push({ name: method.name, reason: error.in(ancestor.scope.file).message });
      }
    }
  }
  return toolkit;
}

interface ToolDecorator {
  type: string;
  mutates_state: boolean;
  discoverable: boolean;
}

/** The flags of a decorator such as `@is_tool(ToolType.WRITE)`; null for a method that is not a tool. */
function decoratorOf(method: Method, scope: Scope, project: Project): ToolDecorator | null {
  for (const decorator of method.decorators) {
    const call = decorator.kind === "call" ? decorator : null;
    const name = pathOf(call ? call.of : decorator)?.at(-1) ?? "";
    if (!/^is_(\w+_)?tool$/.test(name)) continue;
    const kind = call?.positional[0] ?? (call && findKeyword(call, "tool_type"));
    const type = (kind && pathOf(kind)?.at(-1)?.toLowerCase()) ?? "read";
    const said = (word: string): boolean | undefined => flagOf(call && findKeyword(call, word), scope, project);
    return {
      type,
      mutates_state: said("mutates_state") ?? type === "write",
      discoverable: said("discoverable") ?? name.includes("discoverable"),
    };
  }
  return null;
}

function flagOf(expression: Node | null, scope: Scope, project: Project): boolean | undefined {
  const value = expression && evaluate(expression, scope, project);
  return typeof value === "boolean" ? value : undefined;
}

function descriptionOf(
  method: Method,
  isHidden: boolean,
  scope: Scope,
  project: Project,
): Pick<ToolSchema, "openai_schema" | "short_desc" | "long_desc"> {
  if (isHidden) return {};
  const docstring = readDocstring(method.docstring ?? "");
  const isStatic = method.decorators.some((decorator) => decorator.kind === "name" && decorator.name === "staticmethod");
  const parameters = isStatic ? method.parameters : method.parameters.slice(1);
  const variadic = parameters.find((parameter) => parameter.isVariadic);
  if (variadic)
    throw new ReaderError(`${method.name} takes any number of arguments (${variadic.name}), which a schema cannot describe`, method.line);
  const fields = parameters.map(({ name, annotation, default: value }) => {
    return { name, annotation, default: value, description: docstring.parameters.get(name) ?? null, scope };
  });
  const summary = docstring.summary || method.name;
  const description = docstring.details ? `${summary}\n\n${docstring.details}` : summary;
  const schema = new SchemaWriter(project).write("parameters", fields);
  return {
    openai_schema: { type: "function", function: { name: method.name, description, parameters: schema } },
    short_desc: docstring.summary,
    long_desc: docstring.details,
  };
}
