// left-out.ts BASE: prints the components, separated by commas, that no file changed since BASE can reach.
import { fileURLToPath } from "node:url";
import { changedFiles } from "./changes.ts";
import { leftOut } from "./reached-by.ts";

const [base] = process.argv.slice(2);
if (base === undefined) throw new Error("name the commit to compare with");
console.log(leftOut(changedFiles(fileURLToPath(new URL("../..", import.meta.url)), base)).join(","));
