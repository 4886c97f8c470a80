"""Thousands of recordings as one dataset of Delta tables: adding, asking, comparing.

    f = perfuse.fleet.open("profiles")
    f.add(["nightly/"], labels={"service": "web"}, engine=perfuse.fleet.Pool(4))
    f.sql("SELECT build, count(*) FROM recordings GROUP BY ALL").fetchall()

It needs the extra `perfuse[fleet]`.
"""

from perfuse.fleet.adding import AddResult
from perfuse.fleet.dataset import Fleet, open
from perfuse.fleet.editing import Edited, relabel, remove
from perfuse.fleet.engines import Dask, Inline, Pool
from perfuse.fleet.store import DatasetError

__all__ = ["AddResult", "Dask", "DatasetError", "Edited", "Fleet", "Inline", "Pool", "open", "relabel", "remove"]
