import type { DomainDefinition } from "../../core/domain.ts";
import { mockTools } from "./agent-tools.ts";
import { MockDb, MockUserDb } from "./model.ts";
import { mockUserTools } from "./user-tools.ts";

/** The smallest domain, for tests: tasks and notifications. */
export const mock: DomainDefinition = {
  name: "mock",
  agent: { toolkit: mockTools, model: MockDb, file: "db.json" },
  user: { toolkit: mockUserTools, model: MockUserDb, file: "user_db.json" },
  policy: (read, isSolo) => read(isSolo ? "policy_solo.md" : "policy.md"),
  soloError: null,
  defaultSplit: null,
};
