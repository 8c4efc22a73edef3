import type { DomainDefinition } from "../../core/domain.ts";
import { airlineTools } from "./agent-tools.ts";
import { FlightDb } from "./model.ts";

/** Flights, users and their reservations; the user has no tools. */
export const airline: DomainDefinition = {
  name: "airline",
  agent: { toolkit: airlineTools, model: FlightDb, file: "db.json" },
  user: null,
  policy: (read) => read("policy.md"),
  soloError: "Airline domain does not support solo mode",
  defaultSplit: "base",
};
