"""A greedy episode as a film: below each frame, the held action and how long it will still be held."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium
import numpy as np
from numpy.typing import NDArray

from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError
from holdfast.envs import Choices, action_names
from holdfast.files import Entry, make_folders, replace_file
from holdfast.policies.evaluation import LONGEST_EPISODE, Moment, Player, play

__all__ = ["FORMATS", "film", "write_film"]

Frame = NDArray[np.uint8]

FORMATS = (".gif", ".mp4")

_SMALLEST_WIDTH = 240
_BAR = 34
_INK = (34, 38, 42)
_PAPER = (247, 247, 244)
_BLUE = (0, 114, 178)
_PALE = (196, 214, 228)


def film(
    player: Player,
    env: gymnasium.Env[Any, Any],
    seeds: Sequence[int],
    longest: int = LONGEST_EPISODE,
    most_frames: int = 2000,
) -> list[Frame]:
    """The frames of one episode per seed, each with the held action and the steps that are left of it.

    Args:
        player: Who decides.
        env: Made with ``render_mode="rgb_array"``.
        seeds: Of the resets.
        longest: Steps after which an episode is cut.
        most_frames: Number of frames after which the film ends.

    Raises:
        ValueError: The environment does not render images.
    """
    frames: list[Frame] = []
    for seed in seeds:
        for moment in play(player, env, seed, longest):
            if len(frames) == most_frames:
                return frames
            frames.append(_frame(env, _caption(moment, _action_name(env, moment.action)), moment))
            if frames[-1].shape != frames[0].shape:
                raise InputError("a film needs frames of one size, but those of this environment vary")
    return frames


def _action_name(env: gymnasium.Env[Any, Any], action: Any) -> str:
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Box):
        return " ".join(f"{number:+.2f}" for number in np.ravel(action))
    return str(action_names(env)[Choices(space).number(action)])


def _caption(moment: Moment, name: str) -> str:
    return "the end" if moment.left == 0 else f"{name}, held for {moment.planned}, {moment.left} left"


def _frame(env: gymnasium.Env[Any, Any], caption: str, moment: Moment) -> Frame:
    from PIL import Image, ImageDraw, ImageFont

    try:
        shown = np.asarray(env.render())
    except gymnasium.error.DependencyNotInstalled as error:
        raise InputError(f"a film needs what this environment draws with: {error}") from None
    except ValueError:
        raise InputError("a film needs frames that are arrays, and this environment's are ragged") from None
    if shown.ndim != 3 or shown.shape[2] != 3 or shown.dtype != np.uint8:
        raise InputError("a film needs an environment that renders as rgb_array, and this one does not")
    if 0 in shown.shape:
        raise InputError(f"a film needs frames with at least one pixel, not of shape {shown.shape}")
    scale = max(1, -(-_SMALLEST_WIDTH // shown.shape[1]))
    shown = shown.repeat(scale, axis=0).repeat(scale, axis=1)
    height, width = shown.shape[:2]
    # Video formats need an even width and height.
    page = Image.new("RGB", (width + width % 2, height + _BAR + (height + _BAR) % 2), _PAPER)
    page.paste(Image.fromarray(shown), (0, 0))
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(12)
    draw.text((6, height + 3), caption, fill=_INK, font=font)
    score = f"return {moment.total:.4g}"
    draw.text((width - 6 - draw.textlength(score, font=font), height + 3), score, fill=_INK, font=font)
    _draw_steps(draw, 6, height + 20, width - 12, moment.planned, moment.left)
    return np.asarray(page)


def _draw_steps(draw: Any, x: int, y: int, width: int, planned: int, left: int) -> None:
    """One box per step of the hold: full where it is still to come."""
    box = min(14.0, width / max(planned, 1))
    for number in range(planned):
        begin = x + number * box
        color = _BLUE if number >= planned - left else _PALE
        draw.rectangle((begin, y, begin + max(box - 2.0, 1.0), y + 8), fill=color)


def write_film(frames: Sequence[Frame], path: Path, frames_per_second: int = 30) -> Path:
    """Write a film as a whole or not at all; its suffix says the format.

    Raises:
        ValueError: It is another format, or a package is missing.
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise InputError(f"path must end in .gif or .mp4, not {str(path)!r}", "path")
    make_folders(path.parent)
    with replace_file(path) as file:
        if kind == ".gif":
            _write_gif(frames, file, frames_per_second)
        else:
            _write_mp4(frames, file, frames_per_second)
    return path


def _write_gif(frames: Sequence[Frame], file: BinaryIO, frames_per_second: int) -> None:
    from PIL import Image

    first, *others = [Image.fromarray(frame).quantize(64) for frame in frames]
    first.save(
        file,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=max(20, round(1000 / frames_per_second)),
        loop=0,
    )


def _write_mp4(frames: Sequence[Frame], file: BinaryIO, frames_per_second: int) -> None:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise InputError(
            f"an .mp4 file needs the package imageio-ffmpeg ({install_command('video')}); "
            "a .gif file needs nothing"
        ) from None
    # The encoder seeks in its file and opens it itself.
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        path = Path(folder) / "film.mp4"
        _encode(imageio_ffmpeg, frames, path, frames_per_second)
        with Entry(Path(folder), (path.name,)).open_to_read() as encoded:
            shutil.copyfileobj(encoded, file)


def _encode(imageio_ffmpeg: Any, frames: Sequence[Frame], path: Path, frames_per_second: int) -> None:
    height, width = frames[0].shape[:2]
    writer = imageio_ffmpeg.write_frames(
        str(path),
        (width, height),
        fps=frames_per_second,
        codec="libx264",
        macro_block_size=2,
        output_params=["-f", "mp4"],
        ffmpeg_log_level="error",
    )
    writer.send(None)
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()
