"""Texts that `--help` shows beside the options: groups of commands, examples, and what other tools
call our commands. Loaded only when help is asked for, or a command does not exist.
"""

from collections.abc import Iterable
from difflib import get_close_matches

# The commands of the root by what people come for; a command that is in no group comes last.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("setup", "up", "chat", "ask")),
    ("Review", ("approvals", "undo", "rewind", "why", "sessions", "runs", "stop")),
    ("Automate", ("schedule", "tasks", "channels", "notices")),
    ("Knowledge", ("memory", "learn", "skills", "notes", "refs")),
    ("Control", ("policy", "rules", "security", "vault", "token", "tls", "login")),
    ("Models and cost", ("models", "usage", "why-tokens")),
    ("Proof", ("journal", "backup", "restore", "replay", "fork", "witness")),
    ("Connect", ("mcp", "acp", "browser", "workers", "worker")),
    (
        "System",
        (
            *("status", "doctor", "incidents", "config", "upgrade", "rollback", "migrate"),
            *("nodes", "node", "service", "serve"),
        ),
    ),
    ("Help", ("help", "completion", "version")),
)

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("palyra up", "start Palyra and chat in this folder"),
        ('palyra ask "what is in this folder?"', "one question, one answer"),
        ("palyra undo", "undo the last change the agent made"),
        ("palyra doctor", "find problems and how to fix them"),
    ),
    "setup": (
        ("palyra setup", "find a model and use it"),
        ("palyra setup --provider ollama --model qwen3:8b", "use this one"),
    ),
    "up": (
        ("palyra up", "start and chat"),
        ("palyra up --detach", "keep the daemon running in the background"),
    ),
    "chat": (
        ("palyra chat", "continue the last session of this folder"),
        ("palyra chat --new", "start a new one"),
        ("palyra chat --session 3", "continue session #3"),
        ("palyra chat --session garden", "continue the session called garden"),
    ),
    "ask": (
        ('palyra ask "summarise README.md"', "one question"),
        ('git diff | palyra ask "review this"', "with piped input"),
        ('palyra ask --continue "and the tests?"', "in the last session"),
        ('palyra ask -f plan.pdf "what is missing?"', "with a file"),
        ('palyra ask --json "list the files"', "for scripts"),
    ),
    "approvals": (
        ("palyra approvals", "list what needs approval"),
        ("palyra approvals allow", "approve the only pending one"),
        ("palyra approvals allow 01KX3V --for 2h", "and similar calls for two hours"),
        ('palyra approvals deny --reason "use the test server"', "tell the agent why"),
    ),
    "undo": (
        ("palyra undo", "undo the last change in this folder"),
        ("palyra undo --preview", "show it first"),
    ),
    "rewind": (("palyra rewind 3 42", "take session #3 back to entry 42"),),
    "sessions": (
        ("palyra sessions", "list sessions with their numbers"),
        ("palyra sessions show 3", "show session #3"),
        ('palyra sessions title 3 "garden"', "name it"),
        ("palyra sessions search tomatoes", "find what was said"),
    ),
    "usage": (
        ("palyra usage", "tokens and cost by day"),
        ("palyra usage --by model", "by model"),
        ("palyra usage budgets", "limits"),
    ),
    "schedule": (
        ('palyra schedule add "every day at 08:00" "summarise new mail"', "once a day"),
        ("palyra schedule", "list schedules and when they run next"),
    ),
    "memory": (
        ('palyra memory add "the server is called apollo"', "remember something"),
        ("palyra memory search server", "find it"),
    ),
    "models": (
        ("palyra models", "list models"),
        ("palyra models default ollama/qwen3:8b", "use this one by default"),
        ("palyra models test", "check that the default model can call tools"),
    ),
    "policy": (
        ("palyra policy show", "the policies in force"),
        ('palyra policy explain shell.run \'{"command": "ls"}\'', "how a call is decided"),
        ("palyra policy suggest", "fewer approvals, from what you allowed"),
    ),
    "security": (("palyra security score", "questions, unattended calls, what would help"),),
    "journal": (
        ("palyra journal verify", "check every entry"),
        ("palyra journal backup", "make a verified copy"),
    ),
    "vault": (("palyra vault set github", "store a secret; its value is asked for"),),
    "skills": (("palyra skills install ./my-skill", "shows what it asks for first"),),
    "config": (
        ("palyra config show", "every setting and where it comes from"),
        ("palyra config set policy.preset coding", "change one"),
    ),
    "service": (
        ("palyra service install", "start with the system, as you"),
        ("palyra service install --system --user palyra", "as root: for the whole machine"),
        ("palyra service install --print", "show the unit and change nothing"),
    ),
    "doctor": (
        ("palyra doctor", "find problems"),
        ("palyra doctor --repair", "and repair what is safe to repair"),
    ),
    "stop": (
        ("palyra stop", "cancel all runs"),
        ("palyra stop --daemon", "stop the daemon"),
    ),
    "mcp": (("palyra mcp add files -- npx some-mcp-server", "add a server that runs here"),),
}

# What people type who come from other tools.
_ELSEWHERE = {
    "run": ("ask", "runs"),
    "exec": ("ask",),
    "do": ("ask",),
    "prompt": ("ask",),
    "query": ("ask",),
    "init": ("setup",),
    "install": ("setup", "skills"),
    "onboard": ("setup",),
    "configure": ("setup", "config"),
    "auth": ("setup", "token"),
    "start": ("up",),
    "daemon": ("up", "serve"),
    "gateway": ("up", "serve"),
    "server": ("serve",),
    "restart": ("up",),
    "kill": ("stop",),
    "cancel": ("stop", "runs"),
    "quit": ("stop",),
    "ps": ("status", "runs"),
    "health": ("doctor", "status"),
    "check": ("doctor",),
    "fix": ("doctor",),
    "info": ("status",),
    "model": ("models",),
    "provider": ("models", "setup"),
    "providers": ("models", "setup"),
    "session": ("sessions",),
    "resume": ("chat", "sessions"),
    "continue": ("chat",),
    "history": ("sessions", "journal"),
    "threads": ("sessions",),
    "log": ("journal",),
    "logs": ("journal", "incidents"),
    "audit": ("journal",),
    "approve": ("approvals",),
    "allow": ("approvals",),
    "deny": ("approvals",),
    "permissions": ("policy", "approvals"),
    "revert": ("undo", "rewind"),
    "rollback": ("undo", "rewind"),
    "explain": ("why", "policy"),
    "why": ("policy", "sessions"),
    "cost": ("usage",),
    "costs": ("usage",),
    "tokens": ("usage", "why-tokens"),
    "budget": ("usage",),
    "cron": ("schedule",),
    "schedules": ("schedule",),
    "remind": ("schedule",),
    "remember": ("memory",),
    "mem": ("memory",),
    "secret": ("vault",),
    "secrets": ("vault",),
    "keys": ("vault", "token"),
    "plugin": ("skills", "mcp"),
    "plugins": ("skills", "mcp"),
    "tools": ("mcp", "skills"),
    "telegram": ("channels",),
    "slack": ("channels",),
    "discord": ("channels",),
    "connect": ("channels", "mcp"),
    "console": ("login",),
    "dashboard": ("login",),
    "web": ("login",),
    "ui": ("login",),
    "open": ("login",),
    "settings": ("config",),
    "set": ("config",),
    "backup": ("journal",),
    "restore": ("journal",),
    "verify": ("journal",),
}


def grouped(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return the groups with the commands that exist."""
    left = list(names)
    groups = []
    for title, members in GROUPS:
        found = [name for name in members if name in left]
        left = [name for name in left if name not in found]
        if found:
            groups.append((title, found))
    return [*groups, ("Other", left)] if left else groups


def meant(given: str, names: Iterable[str]) -> list[str]:
    """Return the commands that somebody may have meant, the likeliest first."""
    known = list(names)
    near = get_close_matches(given.lower(), known, 3, 0.7)
    other = [name for name in _ELSEWHERE.get(given.lower(), ()) if name in known]
    return list(dict.fromkeys([*other, *near]))[:3]
