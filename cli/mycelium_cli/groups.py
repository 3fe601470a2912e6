"""Commands and groups of commands: loaded when used, with an example in every help text."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.options import ALL, SharedOption, shared_options
from mycelium_cli.output import to_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Command", "LazyGroup", "command"]

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _show_help(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        to_stdout(context.get_help())
        context.exit()


class _Sections(click.Command):
    """Help with the shared options and the example in sections of their own, written as any result is."""

    example: str

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """See `click.Command`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def write_options(
        self, command: click.Command, context: click.Context, formatter: click.HelpFormatter
    ) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                (shared if isinstance(parameter, SharedOption) else own).append(record)
        for title, records in (("Options", own), ("Shared options", shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def write_example(self, formatter: click.HelpFormatter) -> None:
        with formatter.section("Example"):
            for line in self.example.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Command(_Sections):
    """A command with an example."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **{"context_settings": _CONTEXT, **kwargs})
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command`. What looks like a value that begins with a dash is told how it is given."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            takes_values = any(isinstance(parameter, click.Argument) for parameter in self.params)
            if not takes_values or (name.startswith("--") and name.split() == [name]):
                raise
            from mycelium_sdk.errors import UsageError

            raise UsageError(
                error.format_message(),
                hint=f"what begins with a dash and is no option goes after `--`: `{ctx.command_path} -- ...`",
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command`."""
        self.write_options(self, ctx, formatter)
        self.write_example(formatter)


class LazyGroup(_Sections, click.Group):
    """A group whose commands are imported when they are asked for.

    `sources` maps each name to `module:attribute`. The group takes every shared option, for the commands
    below it.
    """

    def __init__(self, *args: Any, sources: Mapping[str, str], example: str, **kwargs: Any) -> None:
        kwargs["params"] = [*kwargs.get("params", ()), *shared_options(*ALL)]
        super().__init__(*args, **{"context_settings": _CONTEXT, **kwargs})
        self.sources = sources
        self.example = example

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order they are listed in."""
        del ctx
        return list(self.sources)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command. None if there is none of that name."""
        del ctx
        source = self.sources.get(cmd_name)
        if source is None:
            return None
        module, _, attribute = source.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)  # noqa: S101 - the table is ours
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`. A name that is almost one is answered with that one."""
        if args and args[0] not in self.sources and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], self.sources, n=1)
            guess = f", did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"there is no command {args[0]!r}{guess}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command`."""
        self.write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
        self.write_example(formatter)


def command(
    name: str, *, example: str, shared: Sequence[str], params: Sequence[click.Parameter] = ()
) -> Callable[[Callable[..., None]], Command]:
    """Make a command of a function, whose docstring is the help text.

    `params` are its own options and arguments, `shared` the names of the shared options that it takes.
    """

    def decorate(function: Callable[..., None]) -> Command:
        return Command(
            name,
            callback=function,
            help=function.__doc__,
            params=[*params, *shared_options(*shared)],
            example=example,
        )

    return decorate
