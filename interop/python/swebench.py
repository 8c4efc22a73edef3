"""The example of the original for swebench: it creates an instance with a datasource and has a patch graded.

As in the example, the platform is found by AENV_SYSTEM_URL, and the patch is a tuple with one text. The arguments are the instance and a file
with the patch. Prints what the reward returns.
"""

import asyncio
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")

from aenv import Environment, setup_logging  # noqa: E402


async def main(instance, path):
    with open(path) as file:
        patch = (file.read(),)
    swebench = Environment("swebench@1.0.0", datasource=f"swebench/{instance}", timeout=120)
    try:
        reward = await swebench.call_reward({"instance": instance, "model_patch": patch, "timeout": 60})
        print(json.dumps(reward))
    finally:
        await swebench.release()


if __name__ == "__main__":
    setup_logging(logging.NullHandler())
    asyncio.run(main(*sys.argv[1:]))
