import { serve } from "@aenv/kit";
import { answerParent } from "../../processes/answer.ts";
import { usageAnswers } from "../../processes/usage.ts";
import { environment, shop } from "../environment.ts";

// node kit.ts [hot | cold | shop]; cold is the path through the MCP SDK in the same kit.
const [kind = "hot"] = process.argv.slice(2);
const served = await serve(kind === "shop" ? shop : environment, { name: "bench", port: 0, useFastPath: kind !== "cold" });
answerParent(usageAnswers(served.url));
