"""The SQLAlchemy dialect: `create_engine("dpsql:///clinic.yaml?user=ana")`. Law: it holds no privacy logic.

    from sqlalchemy import create_engine, func, select
    from dpsql.interfaces.sqlalchemy import result_metadata

    with create_engine("dpsql:///schemas/clinic.yaml?user=ana").connect() as connection:
        result = connection.execute(select(patients.c.sex, func.count()).group_by(patients.c.sex))
        print(result.all(), result_metadata(result).errors, result_metadata(result).loss)

`told` is the earlier name of `result_metadata`.

`sqlalchemy` is the library wherever it is imported here; this package is `dpsql.interfaces.sqlalchemy`.
"""

from __future__ import annotations

from dpsql.interfaces.sqlalchemy.dialect import DpsqlDialect
from dpsql.interfaces.sqlalchemy.execution import ResultMetadata, result_metadata, told

__all__ = ["DpsqlDialect", "ResultMetadata", "result_metadata", "told"]
