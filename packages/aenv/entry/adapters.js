// Written by `npm run format`.
import { refuseOldNode } from "../bin/node-version.js";

refuseOldNode("aenvironment");

export const {
  agentsTools,
  aiTools,
  chatTools,
  langchainTools,
  mastraTools,
  modelText,
  modelTools,
  parseArguments,
  responsesTools,
  toolNames,
} = await import("../src/adapters.ts");
