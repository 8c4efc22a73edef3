import { serve } from "@aenv/kit";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";

// node host.ts <variables as JSON>: one process that hosts tau2 like the platform's hosts, and reports its memory.
const [variables = "{}"] = process.argv.slice(2);
Object.assign(process.env, JSON.parse(variables));
// Imported after the variables are set, because it reads them on import.
const { default: tau2 } = await import("@aenv/tau2");
const served = await serve(tau2, { name: "tau2", port: 0 });
answerParent(usageAnswers(served.url));
