# The command line and the MCP server: docker build -f deploy/cli.Dockerfile -t skillruntime-cli .
#   docker run --rm -v ./skills:/skills -v .:/work skillruntime-cli validate /skills
#   docker run --rm -i -v ./skills:/skills -v .:/work skillruntime-cli serve --mcp --skills /skills --workspace /work
FROM python:3.13-slim

# bubblewrap is the sandbox of untrusted scripts; Docker's own confinement may keep it from working, then Landlock does.
# git is for "diff" with a revision; the checkout at /work belongs to a user of the host.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git \
    && git config --system --add safe.directory /work \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 skills

COPY . /src
RUN pip install --no-cache-dir '/src[standard,mcp,serve]' && rm -rf /src

USER skills
WORKDIR /work
ENTRYPOINT ["skillruntime"]
