/**
 * The script of the page. Answers are inserted as text, never as HTML. The only exception is images: their type must be one of a
 * list, and their data must be base64.
 */
export const SCRIPT = `
"use strict";
(() => {
  let nextId = 0;

  async function post(path, body, headers) {
    const response = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, isStream: (response.headers.get("content-type") || "").startsWith("text/event-stream"), text: await response.text() };
  }

  async function callTool(name, args) {
    const id = ++nextId;
    const answer = await post("/mcp", { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } }, { "mcp-protocol-version": "2025-06-18" });
    const messages = answer.isStream ? streamed(answer.text) : [parsed(answer.text)];
    const reply = messages.find((message) => message && message.id === id);
    if (reply === undefined) throw new Error("unexpected answer with status " + answer.status + ": " + answer.text);
    if (reply.error) throw new Error(reply.error.message);
    return reply.result;
  }

  function streamed(text) {
    return text.split(/\\r?\\n\\r?\\n/).map((event) => parsed(event.split(/\\r?\\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\\n")));
  }

  function parsed(text) {
    try { return JSON.parse(text); } catch { return undefined; }
  }

  async function request(path, body) {
    const answer = await post(path, body, {});
    const value = parsed(answer.text);
    if (!value || value.success !== true) throw new Error((value && value.error) || "unexpected answer with status " + answer.status + ": " + answer.text);
    return value.data;
  }

  function argumentsOf(form) {
    const args = {};
    for (const field of form.querySelectorAll("[data-kind]")) {
      const { kind } = field.dataset;
      if (field.value === "" && !(kind === "text" && field.required)) continue;
      if (kind === "text") args[field.name] = field.value;
      else if (kind === "number" || kind === "integer") args[field.name] = Number(field.value);
      else args[field.name] = jsonOf(field);
    }
    return args;
  }

  function jsonOf(field) {
    try { return JSON.parse(field.value); } catch { throw new Error(field.name + " is not valid JSON"); }
  }

  function show(output, texts, isFailed) {
    output.classList.toggle("failed", isFailed);
    output.replaceChildren(...texts);
  }

  function blockOf(block) {
    if (typeof block.text === "string") return block.text + "\\n";
    if (block.type === "image" && /^image\\/(png|jpeg|gif|webp)$/.test(block.mimeType) && /^[\\w+/=]*$/.test(block.data)) {
      const image = document.createElement("img");
      image.alt = "An image that the tool returned";
      image.src = "data:" + block.mimeType + ";base64," + block.data;
      return image;
    }
    return JSON.stringify(block, null, 2) + "\\n";
  }

  async function whileDisabled(button, output, work) {
    button.disabled = true;
    try {
      await work();
    } catch (error) {
      show(output, [error instanceof TypeError ? "No answer. Is aenv run still running?" : error.message], true);
    } finally {
      button.disabled = false;
    }
  }

  for (const form of document.querySelectorAll("form[data-tool]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const output = form.querySelector("output");
      whileDisabled(form.querySelector("button[type=submit]"), output, async () => {
        const result = await callTool(form.dataset.tool, argumentsOf(form));
        const blocks = (result.content || []).map(blockOf);
        show(output, blocks.length === 0 ? ["(no content)"] : blocks, result.isError === true);
      });
    });
  }

  const episode = document.getElementById("episode");
  for (const button of document.querySelectorAll("[data-reset]")) {
    button.addEventListener("click", () => whileDisabled(button, episode, async () => {
      const { task, seed, observation } = await request("/task/reset", button.dataset.reset === "" ? {} : { task: button.dataset.reset });
      const seen = typeof observation === "string" ? observation : JSON.stringify(observation, null, 2);
      show(episode, ["Task: " + (task ? task.id : "none") + "\\nSeed: " + seed + "\\nObservation: " + seen], false);
    }));
  }
  for (const button of document.querySelectorAll("[data-reward]")) {
    button.addEventListener("click", () => whileDisabled(button, episode, async () => {
      show(episode, ["Reward: " + JSON.stringify(await request("/task/reward", {}), null, 2)], false);
    }));
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      } catch {
        getSelection().selectAllChildren(code);
      }
    });
  }
})();
`;
