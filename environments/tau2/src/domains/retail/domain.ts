import type { DomainDefinition } from "../../core/domain.ts";
import { retailTools } from "./agent-tools.ts";
import { RetailDb } from "./model.ts";

/** A shop's customer service: looks up, modifies, cancels, exchanges and returns orders. */
export const retail: DomainDefinition = {
  name: "retail",
  agent: { toolkit: retailTools, model: RetailDb, file: "db.json" },
  user: null,
  policy: (read) => read("policy.md"),
  soloError: "Retail domain does not support solo mode",
  defaultSplit: "base",
};
