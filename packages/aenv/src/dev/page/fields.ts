import { isObject, type ToolDescriptor } from "@aenv/contract";
import { type Html, html } from "./html.ts";

/** The kind of input, which also decides how the page's script parses the text. */
type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

/** One labelled field for each property of a tool's input. */
export function fieldsOf({ inputSchema }: ToolDescriptor, prefix: string): Html[] {
  const properties = isObject(inputSchema.properties) ? Object.entries(inputSchema.properties) : [];
  const required = Array.isArray(inputSchema.required) ? inputSchema.required : [];
  return properties.map(([name, schema], at) => field(name, isObject(schema) ? schema : {}, required.includes(name), `${prefix}-${at}`));
}

export function kindOf(schema: Readonly<Record<string, unknown>>): Kind {
  if (Array.isArray(schema.enum)) return "choice";
  if (schema.type === "string") return "text";
  if (schema.type === "number" || schema.type === "integer" || schema.type === "boolean") return schema.type;
  return "json";
}

function field(name: string, schema: Readonly<Record<string, unknown>>, isRequired: boolean, id: string): Html {
  const about = typeof schema.description === "string" ? schema.description : "";
  const kind = kindOf(schema);
  return html`<div class="field">
<label for="${id}">${name}${isRequired ? html`<span class="required" aria-hidden="true"> *</span>` : html``}</label>
${control(name, schema, kind, isRequired, id, about !== "")}
${about === "" ? html`` : html`<p class="hint" id="${id}-about">${about}</p>`}
</div>`;
}

function control(
  name: string,
  schema: Readonly<Record<string, unknown>>,
  kind: Kind,
  isRequired: boolean,
  id: string,
  hasAbout: boolean,
): Html {
  const common = html`id="${id}" name="${name}" data-kind="${kind}"${isRequired ? html` required` : html``}${hasAbout ? html` aria-describedby="${id}-about"` : html``}`;
  const defaultValue =
    schema.default === undefined ? "" : typeof schema.default === "string" ? schema.default : JSON.stringify(schema.default);
  switch (kind) {
    case "text":
      return html`<input type="text" ${common} value="${defaultValue}" autocomplete="off">`;
    case "number":
    case "integer":
      return html`<input type="number" step="${kind === "integer" ? "1" : "any"}" ${common} value="${defaultValue}">`;
    case "boolean":
      return options(common, [false, true], schema.default, isRequired);
    case "choice":
      return options(common, schema.enum as readonly unknown[], schema.default, isRequired);
    case "json":
      return html`<textarea rows="2" placeholder="JSON" ${common}>${defaultValue}</textarea>`;
  }
}

/** Values are JSON, so that `"1"` and `1` differ. */
function options(common: Html, values: readonly unknown[], defaultValue: unknown, isRequired: boolean): Html {
  const choices = values.map((value) => {
    const text = JSON.stringify(value);
    return html`<option value="${text}"${value === defaultValue ? html` selected` : html``}>${typeof value === "string" ? value : text}</option>`;
  });
  return html`<select ${common}>${isRequired ? html`` : html`<option value=""></option>`}${choices}</select>`;
}
