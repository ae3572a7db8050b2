"""Families in which every domain mixes the features by its own linear map.

Correlations and leading axes differ from domain to domain, and in the target.
"""

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation
from scipy.stats import ortho_group

from covshift_bench.families.world import (
    choose_classes,
    given_classes,
    in_groups,
    keep_even_classes,
    map_domains,
    take_classes,
)


def affine_groups(world):
    """Every domain is mapped by a linear map of its own."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        A = np.eye(d) + rng.uniform(0.2, 0.5) * rng.standard_normal((d, d))
        move = 1.5 * rng.standard_normal(d)
        return lambda X: X @ A + move

    return map_domains(world, draw_map)


def correlated_groups(world):
    """Every domain has its own correlations: a symmetric, positive map of the rows, and a move."""
    rng, d = world.rng, world.n_informative

    def draw_map():
        Q = ortho_group.rvs(max(d, 2), random_state=rng)[:d, :d]
        A = (Q * np.exp(0.8 * rng.standard_normal(d))) @ Q.T
        move = 1.5 * rng.standard_normal(d)
        return lambda X: X @ A + move

    return map_domains(world, draw_map)


def turned_factors(world):
    """A few factors hold the classes; every site turns their plane, moves and sizes it by its own.

    Up to that, sites load the factors on the features alike: their leading axes can be aligned.
    """
    rng, rank, width = world.rng, int(world.rng.randint(2, 5)), int(world.rng.randint(8, 31))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), min(world.n_noise, 5)
    centers = rng.uniform(1.2, 2.5) * rng.standard_normal((world.n_classes, rank))
    loadings = ortho_group.rvs(width, random_state=rng)[:rank] * rng.uniform(1, 2, size=(rank, 1))
    tilt, strength, noise = rng.uniform(0.3, 1.3), rng.uniform(0.3, 1.0), rng.uniform(0.3, 0.7)

    def draw_own():
        turned = loadings + tilt * rng.standard_normal((rank, width)) / np.sqrt(width)
        turned *= np.exp(0.5 * strength * rng.standard_normal())
        move = 2 * rng.standard_normal(rank) @ turned + rng.standard_normal(width)
        return turned, strength * move

    def draw(n, turned, move):
        y = rng.randint(world.n_classes, size=n)
        factors = centers[y] + rng.standard_normal((n, rank))
        return factors @ turned + noise * rng.standard_normal((n, width)) + move, y

    return in_groups(world, draw_own, draw)


def camera_frames(world):
    """Points of a body in space, seen by cameras that are each turned by its own angle.

    Three modes of movement, of unequal size; the lesser ones hold the classes. With the camera all
    modes turn, and the greatest is seen where another camera sees a lesser one.
    """
    rng, n_points = world.rng, int(world.rng.randint(3, 8))
    world.n_classes, world.n_noise = int(rng.choice([2, 2, 3, 4])), min(world.n_noise, 5)
    modes = ortho_group.rvs(3 * n_points, random_state=rng)[:3] * np.array([[10.0], [3.0], [1.5]])
    modes = modes.reshape(3, n_points, 3)
    centers = rng.uniform(1.0, 2.0) * rng.standard_normal((world.n_classes, 3)) * [0.2, 1.0, 1.0]
    body = rng.uniform(0, 3.0) * rng.standard_normal((n_points, 3))
    farthest, noise = rng.uniform(0.5, 1.6), rng.uniform(0.1, 0.5)

    def draw_own():
        axis = rng.standard_normal(3)
        angle = rng.uniform(-farthest, farthest)
        return (Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix(),)

    def draw(n, turn):
        y = rng.randint(world.n_classes, size=n)
        amounts = centers[y] + rng.standard_normal((n, 3))
        points = (body + np.tensordot(amounts, modes, axes=1)) @ turn
        return points.reshape(n, -1) + noise * rng.standard_normal((n, 3 * n_points)), y

    return in_groups(world, draw_own, draw)


def spilling_dyes(world):
    """Every lot of dyes has its own brightness and background, and spills into nearby channels."""
    rng, d = world.rng, world.n_informative
    keep_even_classes(world)
    spilling, strength = rng.uniform(0.1, 0.7), rng.uniform(0.3, 1.4)
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))

    def draw_own():
        spill = np.where(apart == 0, 1.0, rng.uniform(0, spilling, (d, d)) ** apart * (apart < 3))
        brightness = np.exp(0.4 * strength * rng.standard_normal((d, 1)))
        return brightness * spill, 2 * strength * rng.standard_normal(d)

    def draw(n, spill, background):
        X, y = world.draw(n)
        return X @ spill + background, y

    return in_groups(world, draw_own, draw)


def turned_caps(world):
    """Electrodes around a head hear three sources; every person's cap is turned, and axes with it.

    The loudest hardly knows the class, and is heard where another cap hears a lesser one.
    """
    rng, width = world.rng, int(world.rng.randint(8, 25))
    choose_classes(world)
    world.n_noise = min(world.n_noise, 5)
    electrodes = np.linspace(0, 2 * np.pi, width, endpoint=False)
    places = rng.uniform(0.7, 1.1) * np.arange(3)
    centers = rng.uniform(1.2, 2.2) * rng.standard_normal((world.n_classes, 3)) * [0.2, 1.0, 1.0]
    focus, farthest, noise = rng.uniform(1, 2.5), rng.uniform(0.4, 1.1), rng.uniform(0.1, 0.5)

    def draw_own():
        turn = farthest * rng.uniform(-1, 1)
        heard = np.exp(focus * np.cos(electrodes - places[:, None] - turn))
        return (heard / np.linalg.norm(heard, axis=1, keepdims=True) * [[8.0], [3.5], [1.8]],)

    def draw(n, heard):
        y = rng.randint(world.n_classes, size=n)
        X = (centers[y] + rng.standard_normal((n, 3))) @ heard
        return X + noise * rng.standard_normal((n, width)), y

    return in_groups(world, draw_own, draw)


def blurred_spectra(world):
    """Spectra; every device blurs them by its own, a linear map, and adds its smooth baseline."""
    rng, width, n_peaks = world.rng, int(world.rng.randint(10, 26)), int(world.rng.randint(3, 7))
    take_classes(world, [2, 2, 3, 4], most_noise=10)
    strength, smooth = rng.uniform(0.3, 1.3), np.vander(np.linspace(-1, 1, width), 4).T
    peaks = np.arange(width) - rng.uniform(0, width - 1, size=(n_peaks, 1))
    peaks = np.exp(-((peaks / rng.uniform(0.8, 2.0, size=(n_peaks, 1))) ** 2))
    amounts = 1 + rng.uniform(0.5, 1.0) * rng.standard_normal((world.n_classes, n_peaks))
    dirt, reading = rng.uniform(0.2, 0.6), rng.uniform(0.01, 0.05)

    def draw_own():
        blur, gain = rng.uniform(0, 1.2 * strength), np.exp(0.3 * strength * rng.standard_normal())
        return blur, gain, strength * rng.standard_normal(4) @ smooth

    def draw(y, blur, gain, baseline):
        X = (amounts[y] + 0.5 * rng.standard_normal((len(y), n_peaks))) @ peaks
        X = X + dirt * rng.standard_normal(X.shape)
        X = gain * gaussian_filter1d(X, blur + 0.01, axis=1, mode="nearest") + baseline
        return X + reading * rng.standard_normal(X.shape)

    return given_classes(world, draw_own, draw)


def bridges(world):
    """States of bridges by how much they swing in each of a few modes, of unequal size.

    Bridges differ in length, and somewhat in where sensors stand: their leading axes are turned.
    """
    rng, width, n_modes = world.rng, int(world.rng.randint(10, 31)), int(world.rng.randint(3, 5))
    take_classes(world, [2, 2, 3, 4], most_noise=5)
    places, numbers = np.linspace(0.05, 0.95, width), np.arange(1, n_modes + 1)
    sizes = np.array([14.0, 7.0, 3.5, 2.0])[:n_modes, None]
    centers = rng.uniform(1.0, 2.0) * rng.standard_normal((world.n_classes, n_modes))
    centers[:, 0] *= 0.2
    strength, noise = rng.uniform(0.3, 1.5), rng.uniform(0.3, 0.8)

    def draw_own():
        stand, length = rng.standard_normal(width), np.exp(0.1 * strength * rng.standard_normal())
        modes = np.sin(np.pi * np.outer(numbers, (places + 0.05 * strength * stand) / length))
        return (sizes * modes / np.linalg.norm(modes, axis=1, keepdims=True),)

    def draw(y, modes):
        X = (centers[y] + rng.standard_normal((len(y), n_modes))) @ modes
        return X + noise * rng.standard_normal(X.shape)

    return given_classes(world, draw_own, draw)
