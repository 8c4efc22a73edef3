import { setTimeout as pause } from "node:timers/promises";
import { defineEnvironment } from "@aenv/kit";

const RED_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/** The tools that the conformance suite expects, with their names and behaviour. */
export const fixture = defineEnvironment({
  tools: [
    { name: "test_simple_text", description: "Answers a line of text.", run: () => "This is a simple text response for testing." },
    {
      name: "test_image_content",
      description: "Answers one red pixel.",
      run: () => ({ type: "image", data: RED_PIXEL, mimeType: "image/png" }),
    },
    {
      name: "test_audio_content",
      description: "Answers a moment of silence.",
      run: () => ({ type: "audio", data: SILENCE, mimeType: "audio/wav" }),
    },
    {
      name: "test_embedded_resource",
      description: "Answers a resource inside the result.",
      run: () => ({
        type: "resource",
        resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." },
      }),
    },
    {
      name: "test_multiple_content_types",
      description: "Answers text, an image and a resource.",
      run: () => [
        { type: "text", text: "Multiple content types test:" },
        { type: "image", data: RED_PIXEL, mimeType: "image/png" },
        {
          type: "resource",
          resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' },
        },
      ],
    },
    {
      name: "test_tool_with_logging",
      description: "Logs three lines while it works.",
      run: async (_, { log }) => {
        log("info", "Tool execution started");
        await pause(50);
        log("info", "Tool processing data");
        await pause(50);
        log("info", "Tool execution completed");
        return "logged three lines";
      },
    },
    {
      name: "test_logging_tool",
      description: "Logs a line.",
      run: (_, { log }) => {
        log("info", "a log line");
        return "logged a line";
      },
    },
    {
      name: "test_error_handling",
      description: "Fails.",
      run: () => {
        throw new Error("This tool intentionally returns an error for testing");
      },
    },
    {
      name: "test_tool_with_progress",
      description: "Tells how far it is, three times.",
      run: async (_, { progress }) => {
        progress(0, 100);
        await pause(50);
        progress(50, 100);
        await pause(50);
        progress(100, 100);
        return "all done";
      },
    },
    {
      name: "test_streaming_elicitation",
      description: "Sends messages while it runs, and no requests to its client.",
      run: async (_, { log, progress }) => {
        log("info", "at work");
        progress(1);
        await pause(10);
        return "done without a question";
      },
    },
    {
      name: "test_mirrored_argument",
      description: "Has an argument that clients of the 2026 revision repeat in a header.",
      input: {
        type: "object",
        properties: { region: { type: "string", "x-mcp-header": "Region" } },
        required: ["region"],
      },
      run: ({ region }) => `region ${region}`,
    },
    {
      name: "json_schema_2020_12_tool",
      description: "Has an input schema with many of the newer keywords.",
      input: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: {
          address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
        },
        properties: {
          name: { type: "string" },
          address: { $ref: "#/$defs/address" },
          contactMethod: { type: "string", enum: ["phone", "email"] },
          phone: { type: "string" },
          email: { type: "string" },
        },
        allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
        if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { required: ["phone"] },
        else: { required: ["email"] },
        additionalProperties: false,
      },
      run: () => "accepted",
    },
  ],
});
