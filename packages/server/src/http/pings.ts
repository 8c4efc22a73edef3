import type { WebSocket } from "ws";

/**
 * Answers the pings of a client. While an answer waits for the client to read, only the latest ping is kept, as RFC 6455 permits: a client
 * that pings and never reads would otherwise fill the server's memory. The socket must be one with `autoPong: false`.
 */
export function answerPings(socket: WebSocket): void {
  let latest: Buffer | null = null;
  let isSending = false;
  const answer = (data: Buffer) => {
    isSending = true;
    socket.pong(data, false, () => {
      isSending = false;
      const next = latest;
      latest = null;
      if (next !== null && socket.readyState === socket.OPEN) answer(next);
    });
  };
  socket.on("ping", (data) => {
    if (isSending) latest = Buffer.from(data);
    else if (socket.readyState === socket.OPEN) answer(Buffer.from(data));
  });
}
