import type { Printer } from "../../terminal/printer.ts";
import { facts } from "../../terminal/table.ts";

/** Prints a new token, which cannot be shown again, and its details. */
export function printToken(token: string, details: Parameters<typeof facts>[0], printer: Printer): void {
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} ${colors.bold(token)}`);
  printer.print();
  printer.print(facts(details, printer.output));
  printer.print();
  printer.print(colors.dim("It is shown only once. Store it with: aenv login, or set AENV_API_KEY."));
}
