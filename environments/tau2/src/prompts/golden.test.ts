import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { serve } from "@aenv/kit";
import { describeNeeding, tau2Path, temporaryTree } from "@aenv/testing";
import { Environment } from "aenvironment";
import { expect, it } from "vitest";
import { domains, openDomain } from "../domains/index.ts";
import { tau2Environment } from "../episode/environment.ts";

interface Recorded {
  readonly requestor: "assistant" | "user";
  readonly name: string;
  readonly openai_schema?: { readonly function: { readonly name: string; readonly description: string; readonly parameters: unknown } };
}

describeNeeding("tau2-data", "a data directory with the benchmark's tool schemas", () => {
  it.each([
    ["mock", "true"],
    ["mock", "false"],
    ["airline", "false"],
    ["retail", "false"],
    ["telecom", "true"],
    ["telecom-workflow", "false"],
  ])("lists the tools of %s (solo: %s) over MCP as the reference offers them", async (domain, isSolo) => {
    const folder = domains.get(domain)?.folder ?? domain;
    const recorded: Recorded[] = JSON.parse(readFileSync(join(tau2Path, `golden/tools.${folder}.json`), "utf8"));
    using tree = temporaryTree({ [`schemas/${folder}.json`]: recorded });
    symlinkSync(join(tau2Path, "data", folder), join(tree.path, folder));
    const variables = { TAU2_DATA_DIR: tree.path, TAU2_DOMAIN: domain, TAU2_SOLO_MODE: isSolo };
    const definition = tau2Environment({ domains, open: openDomain, variables });
    await using sandbox = await serve(definition, { name: "tau2", port: 0 });
    await using env = new Environment("tau2", { instanceUrl: sandbox.url });

    const listed = (await env.listTools()).map(({ name, description, inputSchema }) => ({
      name: name.slice("tau2/".length),
      description,
      parameters: inputSchema,
    }));
    const offered = recorded.flatMap(({ requestor, openai_schema }) =>
      openai_schema && (requestor === "assistant" || isSolo === "true") ? [openai_schema.function] : [],
    );
    expect(listed.filter(({ name }) => name !== "done")).toEqual(offered);
    expect(await env.callFunction("tau2_get_available_tools")).toEqual(
      expect.arrayContaining(offered.map((schema) => ({ type: "function", function: schema }))),
    );
  });
});
