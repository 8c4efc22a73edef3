"""An environment without an SDK: the routes of docs/guides/programs.md with Python's standard library alone.

The first half is the game. The second half serves any class like `Game`: copy it, and write another class.
"""

import base64
import hashlib
import json
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class Refused(Exception):
    """A request that is answered with an error: a code of the table of errors, its HTTP status, and what is wrong."""

    def __init__(self, code, status, message):
        super().__init__(message)
        self.code, self.status = code, status


# --- The environment -------------------------------------------------------------------------------------------------

# Nothing of a task that is listed may give its solution away: trainers show it to agents.
TASKS = [
    {"id": "short", "split": "train", "instruction": "Find a word of four letters.", "words": ["lamp", "sand", "tree", "wolf"]},
    {"id": "long", "split": "train", "instruction": "Find a word of six letters.", "words": ["anchor", "bridge", "carpet", "desert"]},
    {"id": "hard", "split": "test", "instruction": "Find a word of five letters.", "words": ["crane", "crate", "grape", "trace"]},
]
MAX_GUESSES = 5


class Game:
    """One episode. Its state is in `self.state`, which is JSON, so that it can be stored, compared and continued elsewhere."""

    TOOLS = [
        {
            "name": "guess",
            "description": "Guesses the word. Answers with a mark per letter: + right, ? elsewhere in the word, - not in it.",
            "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        },
        {
            "name": "hint",
            "description": "Tells the first letter. It lowers the reward.",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ]
    # Which parts of an episode there are. A part that is false has no method below.
    ABILITIES = {
        "prompt": True,
        "reply": True,
        "hear": False,
        "status": True,
        "stepRewards": True,
        "digest": True,
        "oracle": True,
        "snapshot": True,
    }

    def __init__(self, task=None, seed=0):
        self.begin(task, seed)

    def begin(self, task_id, seed):
        """Begins an episode: equal tasks and seeds begin equally."""
        task = next((one for one in TASKS if one["id"] == (task_id or TASKS[0]["id"])), None)
        if task is None:
            raise Refused("task.not_found", 404, f"there is no task {task_id!r}; GET /task/list lists them")
        word = random.Random(f"{task['id']} {seed}").choice(task["words"])
        self.state = {"task": task["id"], "seed": seed, "word": word, "guesses": [], "hints": 0, "gain": 0.0}

    @property
    def is_solved(self):
        return self.state["word"] in self.state["guesses"]

    def task(self):
        return next(public(one) for one in TASKS if one["id"] == self.state["task"])

    def observation(self):
        return {"letters": len(self.state["word"]), "guesses": MAX_GUESSES}

    def prompt(self):
        text = f"{self.task()['instruction']} You have {MAX_GUESSES} guesses. Guess with the tool, or say the word alone."
        return [{"role": "user", "content": text}]

    def call(self, tool, arguments):
        """A tool call. A `ValueError` is for the agent: the result has `isError`, and the state stays as it is."""
        if tool == "hint":
            self.state["hints"] += 1
            self.state["gain"] = -0.1
            return f"It begins with {self.state['word'][0]}."
        return self.guess(arguments.get("word"))

    def guess(self, word):
        state = self.state
        if self.status()["done"]:
            raise ValueError("the game is over")
        if not isinstance(word, str) or len(word) != len(state["word"]):
            raise ValueError(f"'word' must be a text of {len(state['word'])} letters")
        state["guesses"].append(word.lower())
        state["gain"] = 1.0 if self.is_solved else 0.0
        marks = ("+" if a == b else "?" if a in state["word"] else "-" for a, b in zip(word.lower(), state["word"]))
        return "".join(marks)

    def reply(self, text):
        """What the agent says without calling a tool is a guess."""
        try:
            answer = self.guess(text.strip())
        except ValueError as error:
            answer = str(error)
        return [{"role": "user", "content": answer}]

    def status(self):
        if self.is_solved:
            return {"done": True, "reason": "solved"}
        is_over = len(self.state["guesses"]) >= MAX_GUESSES
        return {"done": is_over, "reason": "no guesses left" if is_over else None}

    def reward(self):
        """The total is the sum of the components times their weights."""
        solved = 1.0 if self.is_solved else 0.0
        alone = solved if self.state["hints"] == 0 else 0.0
        weights = {"solved": 0.75, "without_hints": 0.25}
        return {"reward": solved * 0.75 + alone * 0.25, "components": {"solved": solved, "without_hints": alone}, "weights": weights}

    def step_reward(self):
        return {"reward": self.state["gain"], "components": {}}

    def oracle(self):
        """The actions that solve the task; `None` if the environment does not know them."""
        other = next(one for one in self.all_words() if one != self.state["word"])
        return [{"tool": "guess", "arguments": {"word": word}} for word in (other, self.state["word"])]

    def digest(self):
        return hashlib.sha256(json.dumps(self.state, sort_keys=True).encode()).hexdigest()

    def snapshot(self):
        # Trainers store it; encoded, a glance at it does not give the word away.
        return {"letters": 1, "state": base64.b64encode(json.dumps(self.state).encode()).decode()}

    def restore(self, snapshot):
        """All of the state, or an error that leaves it as it is."""
        try:
            state = json.loads(base64.b64decode(snapshot["state"]))
            if set(state) != set(self.state):
                raise ValueError("it has other fields")
        except (KeyError, TypeError, ValueError) as error:
            raise Refused("snapshot.invalid", 400, f"this is no snapshot of the game: {error}") from error
        self.state = state

    def all_words(self):
        return next(one["words"] for one in TASKS if one["id"] == self.state["task"])


def public(task):
    """What trainers may see of a task: never the words."""
    return {key: value for key, value in task.items() if key != "words"}


# --- The routes ------------------------------------------------------------------------------------------------------


class Instance:
    """An episode with its id. Calls on it run one after the other."""

    def __init__(self, variables=None, arguments=(), task=None, seed=None):
        self.lock = threading.RLock()
        self.variables, self.arguments = variables or {}, list(arguments)
        self.game = Game(task, random.randrange(2**31) if seed is None else seed)

    def spec(self):
        """All that another process needs to continue it."""
        state = self.game.state
        return {
            "task": state["task"],
            "seed": state["seed"],
            "environment_variables": self.variables,
            "arguments": self.arguments,
            "snapshot": self.game.snapshot(),
        }


def list_tasks(instance, body, query):
    chosen = [one for one in TASKS if query.get("split", one["split"]) == one["split"]]
    offset, limit = whole_number(query, "offset", 0), whole_number(query, "limit", 100)
    return {"items": [public(one) for one in chosen[offset : offset + limit]], "total": len(chosen)}


def reset(instance, body, query):
    """A field that is left out keeps its value."""
    state = instance.game.state
    task, seed = body.get("task"), body.get("seed")
    if task is not None and not isinstance(task, str):
        raise Refused("request.invalid", 400, "'task' must be the id of a task")
    if seed is not None and not is_integer(seed):
        raise Refused("request.invalid", 400, "'seed' must be an integer")
    instance.game.begin(task or state["task"], state["seed"] if seed is None else seed)
    return {"task": instance.game.task(), "seed": instance.game.state["seed"], "observation": instance.game.observation()}


def reply(instance, body, query):
    message = body.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content", ""), (str, type(None))):
        raise Refused("request.invalid", 400, "'message' must be a message of a chat")
    return {"messages": instance.game.reply(message.get("content") or ""), "status": instance.game.status()}


def restore(instance, body, query):
    instance.game.restore(body.get("snapshot"))


# The routes of one instance, but for MCP: what each does with the instance, the body and the query.
ROUTES = {
    "GET /health": lambda instance, body, query: {"status": "healthy"},
    "GET /functions/list": lambda instance, body, query: {"total": 0, "functions": [], "reward": [], "health": []},
    "GET /task/list": list_tasks,
    "POST /task/reset": reset,
    "POST /task/reward": lambda instance, body, query: instance.game.reward(),
    "GET /episode": lambda instance, body, query: Game.ABILITIES,
    "GET /episode/prompt": lambda instance, body, query: {"messages": instance.game.prompt()},
    "POST /episode/reply": reply,
    "GET /episode/status": lambda instance, body, query: instance.game.status(),
    "POST /episode/reward": lambda instance, body, query: instance.game.step_reward(),
    "GET /episode/oracle": lambda instance, body, query: {"actions": instance.game.oracle()},
    "GET /state/digest": lambda instance, body, query: {"digest": instance.game.digest()},
    "POST /state/snapshot": lambda instance, body, query: instance.game.snapshot(),
    "POST /state/restore": restore,
}


class Host:
    """Many instances in this process, for `"isolation": "shared"`. Leave it out, and each instance has a process of its own."""

    def __init__(self):
        self.lock = threading.Lock()
        # The first one is served at the root: by `aenv run`, and where each instance has a process of its own.
        self.instances = {"default": Instance()}

    def get(self, instance_id):
        instance = self.instances.get(instance_id)
        if instance is None:
            raise Refused("instance.not_found", 404, f"there is no instance {instance_id!r} in this process")
        return instance

    def create(self, body):
        instance = Instance(body.get("environment_variables"), body.get("arguments", ()), body.get("task"), body.get("seed"))
        if body.get("snapshot") is not None:
            instance.game.restore(body["snapshot"])
        with self.lock:
            if body["id"] in self.instances:
                raise Refused("instance.exists", 409, f"the instance {body['id']!r} exists already")
            self.instances[body["id"]] = instance
        return {"id": body["id"]}

    def fork(self, parent, body):
        with parent.lock:
            spec = parent.spec()
        return [self.create({**spec, "id": instance_id}) for instance_id in body["ids"]]

    def delete(self, instance_id):
        self.get(instance_id)
        with self.lock:
            del self.instances[instance_id]
        return "deleted"

    def answer(self, method, path, body, query):
        """Finds the instance in the path, and the route below it."""
        if path == "/env-instance":
            if method == "POST":
                return self.create(body)
            return {"keepsStateInModules": False, "tools": Game.TOOLS, "taskCount": len(TASKS)}
        if path == "/env-instance/list":
            return {"items": [{"id": instance_id} for instance_id in self.instances if instance_id != "default"]}
        instance_id, below = "default", path
        if path.startswith("/env-instance/"):
            name, slash, rest = path[len("/env-instance/") :].partition("/")
            instance_id, below = unquote(name), slash + rest
        if (method, below) == ("DELETE", ""):
            return self.delete(instance_id)
        instance = self.get(instance_id)
        if (method, below) == ("POST", "/fork"):
            return self.fork(instance, body)
        with instance.lock:
            if (method, below) == ("GET", "/fork-spec"):
                return instance.spec()
            if (method, below) == ("POST", "/mcp"):
                return answer_mcp(instance, body)
            route = ROUTES.get(f"{method} {below}")
            if route is None:
                known = below == "/mcp" or any(one.endswith(f" {below}") for one in ROUTES)
                raise Refused("route.method_not_allowed", 405, method) if known else Refused("route.not_found", 404, path)
            return route(instance, body, query)


class Rpc(dict):
    """A JSON-RPC message, which has no envelope."""


def answer_mcp(instance, message):
    """The four methods that clients need. A notification has no id, and no answer."""
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return rpc_error(None, -32600, "this is no JSON-RPC request")
    if "id" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        server = {"name": "letters", "version": "1.0.0"}
        return rpc_result(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
    if method == "ping":
        return rpc_result(message, {})
    if method == "tools/list":
        return rpc_result(message, {"tools": Game.TOOLS})
    if method != "tools/call":
        return rpc_error(message["id"], -32601, f"there is no method {method!r}")
    if not any(tool["name"] == params.get("name") for tool in Game.TOOLS):
        return rpc_error(message["id"], -32602, f"Unknown tool: {params.get('name')}")
    try:
        result = {"content": [{"type": "text", "text": instance.game.call(params["name"], params.get("arguments") or {})}]}
    except ValueError as error:
        result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
    # With the status in the result, clients need not ask for it after each call.
    return rpc_result(message, {**result, "_meta": {"aenv/status": instance.game.status()}})


def rpc_result(message, result):
    return Rpc(jsonrpc="2.0", id=message["id"], result=result)


def rpc_error(message_id, code, text):
    return Rpc(jsonrpc="2.0", id=message_id, error={"code": code, "message": text})


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def whole_number(query, name, otherwise):
    text = query.get(name, str(otherwise))
    if not text.isdecimal():
        raise Refused("request.invalid", 400, f"{name} is {text!r}; it must be a non-negative integer")
    return int(text)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Connections are kept open.
    disable_nagle_algorithm = True
    max_body_bytes = 16 * 1024 * 1024

    def answer(self):
        url = urlsplit(self.path)
        is_mcp = url.path.endswith("/mcp")
        try:
            # Also read where it is not used: what is left would be taken for the next request.
            body = self.read_body()
            query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            data = self.server.host.answer(self.command, url.path.rstrip("/") or "/", body, query)
        except Refused as error:
            if is_mcp and error.status == 400:
                return self.send(200, rpc_error(None, -32700, str(error)))
            return self.refuse(error)
        except Exception as error:  # The cause is in the log, and the platform knows that no score may be made of it.
            self.log_error("%s %s: %r", self.command, self.path, error)
            return self.refuse(Refused("episode.failed", 500, f"{type(error).__name__}: {error}"))
        if is_mcp and data is None:
            return self.send(202, None)
        return self.send(200, data if isinstance(data, Rpc) else {"success": True, "data": data})

    do_GET = do_POST = do_DELETE = do_PUT = answer

    def read_body(self):
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_body_bytes or "transfer-encoding" in self.headers:
            self.close_connection = True
            raise Refused("request.too_large", 413, f"a body needs a content-length of at most {self.max_body_bytes} bytes")
        text = self.rfile.read(int(length))
        try:
            body = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise Refused("request.invalid", 400, f"the body is no JSON: {error}") from error
        if not isinstance(body, dict):
            raise Refused("request.invalid", 400, "the body must be a JSON object")
        return body

    def refuse(self, error):
        info = {"code": error.code, "retryable": False}
        self.send(error.status, {"success": False, "error": str(error), "errorInfo": info})

    def send(self, status, value):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, *_):
        pass  # Errors only.


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address):
        super().__init__(address, Handler)
        self.host = Host()

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):  # A client that has gone is no error.
            super().handle_error(request, client_address)


if __name__ == "__main__":
    # The platform says where to listen.
    Server((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8081")))).serve_forever()
