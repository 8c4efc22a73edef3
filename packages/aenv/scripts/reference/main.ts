import { fileURLToPath } from "node:url";
import { commandsPage } from "./commands.ts";
import { errorsPage } from "./errors.ts";
import { findStale, writePages } from "./page.ts";
import { routesPage, servedOpenApi } from "./routes.ts";
import { settingsPage } from "./settings.ts";

// Writes docs/reference; with `--check` it writes nothing and fails if a page is out of date.
const folder = fileURLToPath(new URL("../../../../docs/reference/", import.meta.url));
const pages = [errorsPage(), settingsPage(), routesPage(await servedOpenApi()), await commandsPage()];
if (process.argv.includes("--check")) {
  const problems = await findStale(folder, pages);
  for (const problem of problems) console.log(`docs/reference/${problem}`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} else {
  await writePages(folder, pages);
}
