"""Reading commands: what is called simple is what bash would run, and nothing that could do harm is
called harmless.
"""

import json
import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.tools.shell.parse import parse
from palyra.tools.shell.read_only_commands import harmless
from tests.material import material

HARMLESS = """
ls
ls -la
ls -lah src
ls -1 --group-directories-first docs
pwd
cat README.md
cat -n src/main.py
cat a.txt b.txt
head README.md
head -20 README.md
head -n 5 src/app.py
tail -n 100 logs/app.log
tail -c 200 data.bin
wc -l src/main.py
wc -l src/*.py
wc README.md
grep TODO src/main.py
grep -rn TODO src
grep -rniE 'def (test|check)' tests
grep -c import src/app.py
grep -rl --include='*.py' asyncio .
grep -A 3 -B 2 error log.txt
grep -e one -e two file.txt
egrep -v '^#' settings.ini
rg TODO
rg -n 'class \\w+' src
rg -i --type py import
find . -name '*.py'
find src -type f -name '*.md' -print
find . -maxdepth 2 -type d
find . -size +100k -not -path './node_modules/*'
find docs -empty
sort names.txt
sort -rn counts.txt
sort -t, -k2 table.csv
sort -u a.txt b.txt
uniq -c names.txt
cut -d, -f1 table.csv
cut -c1-80 long.txt
tr a-z A-Z
diff a.txt b.txt
diff -u old.py new.py
diff -rq one two
cmp a.bin b.bin
comm -12 a.txt b.txt
file image.png
stat README.md
stat -c '%s %n' README.md
du -sh .
du -h --max-depth=1 src
sha256sum dist/app.whl
md5sum a.txt
echo hello world
echo -n done
printf '%s\\n' a b
date
date +%Y-%m-%d
date -u
whoami
id -u
uname -a
nproc
which python3
command -v git
basename src/main.py .py
dirname src/main.py
realpath src
readlink -f link
seq 1 10
sed -n 10,20p src/main.py
sed -n 5p a.txt
tree -L 2
tree -a -I node_modules src
jq . package.json
jq -r '.name' package.json
nl -ba src/main.py
od -c data.bin
xxd -l 64 data.bin
hexdump -C data.bin
strings -n 8 data.bin
column -t -s, table.csv
test -f README.md
true
cat log.txt | grep error | wc -l
find . -name '*.py' | head -5
sort names.txt | uniq -c | sort -rn | head -10
grep -rn TODO src | cut -d: -f1 | sort -u
ls -la | tail -5
cat -- -odd-name
ls ./*.txt
head -n -5 a.txt
jq . environment.json
python --version
python3 -V
node --version
git status
git status -sb
git status --porcelain=v1
git diff
git diff --stat HEAD~1 -- src
git diff --cached
git log --oneline -10
git log -p --since=2.days src/a.py
git log -n 3 --format=%H
git show HEAD:src/a.py
git branch -a
git branch --show-current
git remote -v
git ls-files
git blame -L 1,10 a.py
git grep -n TODO
git rev-parse --abbrev-ref HEAD
git diff | head -50
""".strip().splitlines()

NOT_HARMLESS = """
rm a.txt
mv a b
cp a b
touch a
mkdir x
ls > files.txt
ls >> files.txt
cat < a.txt
ls 2>/dev/null
ls; rm a
ls && rm a
ls || rm a
ls & rm a
ls | tee a
ls | sh
ls | xargs rm
cat $(ls)
cat `ls`
echo $HOME
echo "$HOME"
cat ${x}
ls *
cat *.txt
sort *
cat ~/.ssh/id_rsa
cat ~root/x
cat /etc/passwd
cat ../secret
cat a/../../b
ls ..
ls -la /
grep -r x /
find / -name x
find .. -name x
find . -delete
find . -name x -exec rm {} +
find . -execdir sh -c id ;
find . -ok rm x
find . -fprint out
find . -newer /etc/passwd
find . -files0-from x
sort -o out in
sort --output=out in
sort -oout in
sort --compress-program=sh in
sort -T /tmp in
sort --files0-from=x
uniq in out
sed -i s/a/b/ f
sed s/a/b/w\\ out f
sed -n '1e id' f
sed -n 1,5w f
awk '{print}' f
git
git commit -m x
git stash
git fetch
git branch new
git tag v1
git remote add a b
git -c core.pager=sh log
git -C .. status
git --exec-path=. status
git diff --output=x
git diff --output x
git diff -U --output=x
git diff --abbrev --output=x
git diff --color --output=x
git log --ext-diff -p
git diff --no-index /etc/passwd a
git show --textconv
git grep -Osh x
git grep --open-files-in-pager=sh x
git cat-file --filters HEAD:a
git blame --contents /etc/passwd a
git config -l
git 'status'
git st*
python3 -c 1
python x.py
python -m pip --version
python --version x
npm --version
cargo --version
diff --color --to-file=/etc/passwd a
head -n -o
jq -c -r -j -a env
cat .env
cat src/.env
cat .git/config
grep -r x .git
cat id_rsa
cat .ssh/config
bash -c ls
sh x.sh
env
env ls
xargs ls
tree -o out
xxd in out
xxd -r in
date -s 12:00
date --set=12:00
file -C -m x
rg --pre sh x
rg --hostname-bin x y
rg --files /etc
grep -f /etc/passwd x
less a
more a
vi a
man ls
tar cf a b
zip a b
curl example.org
wget example.org
nc -l 1
ssh host
make
npm test
test -v 'a[$(id)]'
[ -f a ]
[[ -f a ]]
printf -v x y
printf '%s' *
A=1 ls
LD_PRELOAD=x ls
'ls'
l\\s
./ls
/bin/ls
ls # comment
ls {a,b}
! ls
time ls
exec ls
eval ls
. x
source x
if true; then ls; fi
(ls)
{ ls; }
cat <(ls)
cat <<< x
cat << E
tail -f log
tail --follow=name log
tail --pid=1 log
head -n
cut -d
jq 'import "a" as a; .' x
jq -f prog x
jq --slurpfile a /etc/passwd . x
jq env
jq -- '-(env|length)' x
git show HEAD:.env
git show :.env
git show 'HEAD:./.env'
git cat-file -p HEAD:.env.local
git diff HEAD:server.key HEAD:a
git log -S x main:.netrc
base64 a b
command ls
command -V ls
which -s
hexdump -f fmt a
stat -c %n /etc/passwd
du -X x
wc --files0-from=x
ls -I
echo *
basename *
cat 'unclosed
cat "unclosed
""".strip().splitlines()


def test_the_honest_commands_are_at_least_sixty() -> None:
    assert len(HARMLESS) >= 60


@pytest.mark.parametrize("command", HARMLESS)
def test_an_honest_command_is_harmless(command: str) -> None:
    assert harmless(command)


@pytest.mark.parametrize(
    "command",
    [
        *NOT_HARMLESS,
        "ls\nrm a",
        "ls\\\nrm a",
        "ls\0",
        "ls\x1b",
        "",
        " ",
        "ls\u00a0a",
        "a\rb",
        "ls \\",
    ],
)
def test_a_command_that_may_do_more_is_not_harmless(command: str) -> None:
    assert not harmless(command)


def test_no_snippet_of_gtfobins_is_harmless() -> None:
    snippets = json.loads(material("injection", "gtfobins_sample_GPL3.json").read_text())
    assert len(snippets) >= 100
    assert [snippet["code"] for snippet in snippets if harmless(snippet["code"])] == []


def test_no_line_of_gtfobins_that_names_a_file_outside_is_harmless() -> None:
    snippets = json.loads(material("injection", "gtfobins_sample_GPL3.json").read_text())
    lines = [
        line
        for snippet in snippets
        for line in snippet["code"].splitlines()
        if "/path/" in line or "/bin/" in line
    ]
    assert len(lines) >= 60
    assert [line for line in lines if harmless(line)] == []


def test_a_simple_command_has_a_program_and_arguments() -> None:
    parsed = parse("""git commit -m 'two words' "and \\"more\\"" a\\ b""")
    assert parsed.simple
    assert (parsed.program, parsed.arguments) == (
        "git",
        ("commit", "-m", "two words", 'and "more"', "a b"),
    )


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "ls | sh",
        "ls && x",
        "a=1 b",
        "$x",
        "ls *",
        "ls > x",
        "(ls)",
        "ls &",
        "ls\nrm",
        "if x",
        "'unclosed",
        "",
        "~/x",
        "ls # x",
    ],
)
def test_anything_else_has_no_program(command: str) -> None:
    parsed = parse(command)
    assert not parsed.simple
    assert parsed.program == ""
    assert parsed.odd


def test_it_is_told_what_a_command_does_as_far_as_it_can_be_seen() -> None:
    assert parse("ls > out").writes
    assert parse("ls > out").redirects == (">",)
    assert parse("find . -name x").spawns
    assert parse("curl example.org").network
    assert parse("cat < /dev/tcp/example.org/80").network
    assert parse('echo "$(id)"').substitutions
    assert parse("ls *.py").globs
    plain = parse("cat a.txt")
    assert not any((plain.writes, plain.spawns, plain.network, plain.substitutions, plain.globs))


WORDS = st.text(
    st.sampled_from(list("ab /-=.,:'\"\\$`*?[]{}~#!&|;<>()%^@+é\t")), min_size=0, max_size=12
)


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_quoted_command_is_read_back_exactly(words: list[str]) -> None:
    parsed = parse("prog " + shlex.join(words))
    assert parsed.simple
    assert list(parsed.arguments) == words


@given(st.text(max_size=80))
def test_reading_never_fails(command: str) -> None:
    parse(command)
    harmless(command)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(list("ab '\"\\$`*{}~#=!-./")), max_size=14))
def test_what_is_called_simple_is_what_bash_makes_of_it(text: str) -> None:
    parsed = parse(f"prog {text}")
    if not parsed.simple:
        return
    done = subprocess.run(
        ["bash", "-c", f"prog() {{ printf '%s\\0' \"$@\"; }}\nprog {text}"],
        capture_output=True,
        cwd="/",
        timeout=10,
        check=True,
    )
    said = done.stdout.decode().split("\0")[:-1]
    assert list(parsed.arguments) == (said if parsed.arguments or said != [""] else [])
