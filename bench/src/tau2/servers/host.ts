import { serve } from "@aenv/kit";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";

// node host.ts <variables as JSON>: one process with tau2 in it, as the platform's hosts are, that can be asked what it holds.
const [variables = "{}"] = process.argv.slice(2);
Object.assign(process.env, JSON.parse(variables));
// Loaded when the variables are there, for it reads them.
const { default: tau2 } = await import("@aenv/tau2");
const served = await serve(tau2, { name: "tau2", port: 0 });
answerParent(usageAnswers(served.url));
