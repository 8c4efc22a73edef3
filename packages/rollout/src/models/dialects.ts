import { chatDialect } from "./chat/dialect.ts";
import type { Dialect, ModelApi } from "./dialect.ts";
import { messagesDialect } from "./messages/dialect.ts";
import { responsesDialect } from "./responses/dialect.ts";

export const dialects: Readonly<Record<ModelApi, Dialect>> = { chat: chatDialect, responses: responsesDialect, messages: messagesDialect };
