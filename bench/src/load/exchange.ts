import type { Dispatcher, Pool } from "undici";

export type Headers = Readonly<Record<string, string>>;

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** One request and its whole answer, through undici's lowest-level API: a cheap load generator leaves more CPU to the server. */
export function send(pool: Pool, method: Dispatcher.HttpMethod, path: string, body: string | null, headers: Headers): Promise<Answered> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let answerHeaders: Answered["headers"] = {};
    let text = "";
    pool.dispatch(
      { method, path, body, headers },
      {
        onRequestStart() {},
        onResponseStart(_, statusCode, received) {
          status = statusCode;
          answerHeaders = received;
        },
        // All answers are ASCII, so a character never spans two chunks.
        onResponseData(_, chunk) {
          text += chunk.toString("latin1");
        },
        onResponseEnd: () => resolve({ status, headers: answerHeaders, body: text }),
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}
