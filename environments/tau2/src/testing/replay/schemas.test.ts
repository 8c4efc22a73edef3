import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { expect, it } from "vitest";
import { domains } from "../../domains/index.ts";

interface RecordedTool {
  readonly requestor: string;
  readonly name: string;
  readonly type: string;
  readonly mutates_state: boolean;
  readonly qualname: string;
  readonly openai_schema: { readonly function: { readonly parameters: unknown } };
}

describeNeeding("tau2-data", "tools", () => {
  it.each([...domains.values()].filter(({ folder, name }) => folder === undefined || folder === name))(
    "of $name are the reference's: order, kind, class and schema, but for our own words",
    ({ name, agent, user }) => {
      const recorded: RecordedTool[] = JSON.parse(readFileSync(join(tau2Path, `golden/tools.${name}.json`), "utf8"));
      const sides = [["assistant", agent.toolkit] as const, ...(user === null ? [] : [["user", user.toolkit] as const])];
      const ours = sides.flatMap(([requestor, { className, tools }]) =>
        tools.map((tool) => [requestor, `${className}.${tool.name}`, tool.kind, tool.mutatesState, wordless(tool.schema)]),
      );
      const theirs = recorded.map((tool) => [tool.requestor, tool.qualname, tool.type, tool.mutates_state, wordless(tool.openai_schema)]);
      expect(ours).toEqual(theirs);
    },
  );
});

/** A schema without its descriptions; a property called description is kept. */
function wordless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(wordless);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key, item]) => key !== "description" || typeof item !== "string");
  return Object.fromEntries(kept.map(([key, item]) => [key, wordless(item)]));
}
