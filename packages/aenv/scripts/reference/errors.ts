import { errorTable } from "@aenv/contract";
import { type Page, page, table } from "./page.ts";

type Table = Readonly<Record<string, { readonly status: number; readonly retryable: boolean; readonly meaning: string }>>;

/** `errors.md`: every code of the error table. */
export function errorsPage(errors: Table = errorTable): Page {
  const rows = Object.entries(errors).map(([code, { status, retryable, meaning }]) => [
    `\`${code}\``,
    String(status),
    retryable ? "yes" : "no",
    meaning,
  ]);
  return page(
    "errors.md",
    "Errors",
    "Every way in which the platform can fail. The code is `error.code` in an HTTP answer and `code` of a `PlatformError` in the SDK. An error is retryable if the same request may succeed later. What goes wrong inside a tool is not an error of the platform: it is the tool result's `isError`.",
    table(["Code", "HTTP status", "Retryable", "Meaning"], rows),
  );
}
