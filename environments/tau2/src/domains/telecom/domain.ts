import type { DomainDefinition } from "../../core/domain.ts";
import { telecomTools } from "./agent-tools.ts";
import { TelecomDb } from "./model.ts";
import { TelecomUserDb } from "./phone/model.ts";
import { sync } from "./sync.ts";
import { telecomUserTools } from "./user-tools.ts";

/** A carrier's technical support: the agent guides the user through the repair of a phone. */
export const telecom: DomainDefinition = {
  name: "telecom",
  folder: "telecom",
  agent: { toolkit: telecomTools, model: TelecomDb, file: "db.toml" },
  user: { toolkit: telecomUserTools, model: TelecomUserDb, file: "user_db.toml" },
  policy: (read, isSolo) => policyOf(read(isSolo ? "main_policy_solo.md" : "main_policy.md"), read("tech_support_manual.md")),
  soloError: null,
  defaultSplit: "base",
  sync,
};

/** The same, but the policy has a workflow for technical support instead of a manual. */
export const telecomWorkflow: DomainDefinition = {
  ...telecom,
  name: "telecom-workflow",
  policy: (read, isSolo) =>
    isSolo
      ? policyOf(read("main_policy_solo.md"), read("tech_support_workflow_solo.md"))
      : policyOf(read("main_policy.md"), read("tech_support_workflow.md")),
};

function policyOf(main: string, support: string): string {
  return `<main_policy>\n${main}\n</main_policy>\n<tech_support_policy>\n${support}\n</tech_support_policy>`;
}
